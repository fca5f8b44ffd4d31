#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "serve/http/request.h"

namespace lamplighter {

// An answer over HTTP.
struct HttpResponse {
  // Bytes that several answers share.
  using Bytes = std::shared_ptr<const std::string>;
  // Sends a part of a stream. Waits while the client is slow; false when it has gone.
  using Send = std::function<bool(std::string_view part)>;

  int status = 200;
  std::string type;  // Content-Type; empty: there is no body
  std::vector<std::pair<std::string, std::string>> headers;
  Bytes body;                                    // null: none
  std::function<void(const Send& send)> stream;  // in place of a body of known length
  bool closes = false;                           // the connection ends behind this answer

  void set_header(const std::string& name, const std::string& value) { headers.emplace_back(name, value); }
  void set_body(std::string content, std::string content_type) {
    body = std::make_shared<const std::string>(std::move(content));
    type = std::move(content_type);
  }
};

// Status line and headers up to the empty line. Values of headers become one line of printable ASCII.
// `chunked`: the stream of an answer is sent in chunks, else until the connection ends.
std::string encode_head(const HttpResponse& response, bool keeps_connection, bool chunked);

// A part of a chunked stream.
std::string encode_chunk(std::string_view part);
constexpr std::string_view kLastChunk = "0\r\n\r\n";

}  // namespace lamplighter
