#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "serve/http/request.h"

namespace lamplighter {

// Reads the requests of one connection from bytes as they come, within limits. Strict where two readers could
// understand a request differently (RFC 9112, sections 6 and 11.2): one length at most, no other coding than
// "chunked", no folded lines, no space before a colon.
class RequestReader {
 public:
  enum class State { waiting, head, body, complete };  // waiting: no byte of a request has come

  explicit RequestReader(const HttpLimits& limits) : limits_(limits) {}

  // Takes bytes and reads on until a request's head is there, then until the request is. Throws HttpError for
  // a request that is refused; nothing can be read behind it.
  State read(std::string_view bytes);
  // Reads the body; the head is there.
  State read_body();

  State state() const { return state_; }
  // From the state `body` on.
  const HttpRequest& request() const { return request_; }
  // The request that is complete. The bytes behind it stay; read("") reads on.
  HttpRequest take();
  // Bytes of memory, those included that are kept for what has not come yet.
  std::size_t held() const { return buffer_.capacity() + head_ + headers_ + request_.body.capacity(); }

 private:
  enum class Part { length, chunk_size, chunk, chunk_end, trailer };

  bool next_line(std::string& line, std::size_t most, int status, const char* what);
  void read_request_line(const std::string& line);
  std::string take_host(std::string_view target);
  void read_header(const std::string& line);
  void check_once() const;
  void check_host();
  void finish_head();
  void take_bytes(std::size_t count);
  void drop_read_bytes();
  bool read_part();

  HttpLimits limits_;
  State state_ = State::waiting;
  HttpRequest request_;
  std::string buffer_;
  std::size_t position_ = 0;  // of the buffer's first byte that was not read
  std::size_t head_ = 0;      // bytes of the head, or of trailers, that were read so far
  std::size_t headers_ = 0;   // bytes of the head that is there
  std::string host_;          // of the address in the request line
  int empty_lines_ = 0;
  Part part_ = Part::length;
  std::size_t left_ = 0;  // bytes of the body or chunk
};

}  // namespace lamplighter
