#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lamplighter {

// Limits of a request, in bytes unless stated otherwise. A request beyond them is refused before it is held.
struct HttpLimits {
  std::size_t line = 8192;     // the request line, and a header line
  std::size_t head = 32768;    // both together, of all lines
  std::size_t headers = 100;   // number
  std::size_t body = 1 << 20;  // also when it is unpacked
};

// A request over HTTP/1.0 or 1.1.
struct HttpRequest {
  std::string method, path;  // the path without its query, with percent signs resolved
  std::string query;         // as it came
  int minor_version = 1;
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  std::string body;
  std::string client;  // its address

  // Null where there is no header of this name, which is given in lower case.
  const std::string* header(std::string_view name) const;
  // The value of a query's parameter, with percent signs resolved.
  std::optional<std::string> parameter(std::string_view name) const;
  bool keeps_connection() const;
  bool has_body() const;  // or will have one

  // Whether the client has gone, or will send nothing more.
  bool is_client_gone() const { return gone != nullptr && *gone; }
  std::shared_ptr<const std::atomic<bool>> gone;
};

// "%41+" is "A+", or "A " in a query. Empty where a percent sign has no two hexadecimal digits behind it.
std::optional<std::string> percent_decode(std::string_view text, bool is_query = false);

std::string lower_case(std::string_view text);

// NAME or NAME:PORT, in the characters of names and addresses. Others have a meaning elsewhere: a browser
// reads "localhost:80@other" as the host "other".
bool is_authority(std::string_view text);

// HOST:PORT, or [HOST]:PORT for an address with colons.
std::string authority_of(const std::string& host, int port);

}  // namespace lamplighter
