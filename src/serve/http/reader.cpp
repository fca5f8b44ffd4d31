#include "serve/http/reader.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include "base/message.h"
#include "serve/http_error.h"

namespace lamplighter {
namespace {

constexpr std::size_t kChunkLine = 256;  // bytes: a number and extensions, which nobody sends
constexpr std::size_t kMethod = 16;      // letters
constexpr int kEmptyLines = 8;           // in front of a request

[[noreturn]] void refuse(int status, const std::string& message) {
  throw HttpError(status, "bad_request", message);
}

bool is_token(std::string_view text) {
  constexpr std::string_view others = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           others.find(c) != std::string_view::npos;
  });
}

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\t') || byte == 0x7F;
  });
}

std::string_view trim(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

// Digits of a base and nothing else.
bool read_number(std::string_view text, int base, std::size_t& value) {
  const char* end = text.data() + text.size();
  const bool digits = !text.empty() && text.front() != '-' && text.front() != '+';
  const auto [rest, error] = std::from_chars(text.data(), end, value, base);
  return digits && error == std::errc() && rest == end;
}

// NAME: VALUE.
std::pair<std::string_view, std::string_view> split_header(std::string_view line) {
  const std::size_t colon = line.find(':');
  const std::string_view name = line.substr(0, std::min(colon, line.size()));
  if (colon == std::string_view::npos || !is_token(name))
    refuse(400, "got the header line " + quote(line) + ", expected NAME: VALUE");
  const std::string_view value = trim(line.substr(colon + 1));
  if (has_control(value)) refuse(400, "header " + quote(name) + ": got control characters");
  return {name, value};
}

[[noreturn]] void refuse_body(std::size_t most) {
  throw HttpError(413, "body_too_large",
                  "the body is too large, expected at most " + std::to_string(most) + " bytes");
}

}  // namespace

// Takes the next line without its end. False where it has not come yet.
bool RequestReader::next_line(std::string& line, std::size_t most, int status, const char* what) {
  const std::size_t end = buffer_.find('\n', position_);
  const std::size_t size = (end == std::string::npos ? buffer_.size() : end) - position_;
  if (size > most + 1) {
    const char* word = status == 414 ? "uri_too_long" : status == 431 ? "headers_too_large" : "bad_request";
    throw HttpError(status, word,
                    std::string(what) + " is too long, expected at most " + std::to_string(most) + " bytes");
  }
  if (end == std::string::npos) return false;
  // Between chunks only CR LF ends a line: a proxy may read on behind a bare LF.
  if (state_ == State::body && (size == 0 || buffer_[end - 1] != '\r'))
    refuse(400, std::string(what) + " ends with a bare line feed, expected CR LF");
  line.assign(buffer_, position_, size);
  if (!line.empty() && line.back() == '\r') line.pop_back();
  position_ = end + 1;
  head_ += size + 1;
  if (head_ > limits_.head) {
    throw HttpError(431, "headers_too_large",
                    "the headers are too long, expected at most " + std::to_string(limits_.head) + " bytes");
  }
  return true;
}

// A proxy sends the whole address. Takes its host; the rest is returned, "" where it is a path.
std::string RequestReader::take_host(std::string_view target) {
  host_.clear();
  const std::string start = lower_case(target.substr(0, std::string_view("https://").size()));
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (start.rfind(scheme, 0) != 0) continue;
    const std::size_t end = std::min(target.find_first_of("/?", scheme.size()), target.size());
    host_ = target.substr(scheme.size(), end - scheme.size());
    if (host_.empty() || !is_authority(host_))
      refuse(400, "got an address whose host is none, expected http://NAME/PATH or http://NAME:PORT/PATH");
    const std::string_view path = target.substr(end);
    return path.substr(0, 1) == "/" ? std::string(path) : "/" + std::string(path);
  }
  return "";
}

void RequestReader::read_request_line(const std::string& line) {
  const std::size_t first = line.find(' '), last = line.rfind(' ');
  if (first == std::string::npos || first == last) refuse(400, "not a request that this server understands");
  request_.method = line.substr(0, first);
  const std::string version = line.substr(last + 1);
  std::string_view target = std::string_view(line).substr(first + 1, last - first - 1);
  if (request_.method.size() > kMethod || !is_token(request_.method))
    refuse(400, "not a request that this server understands");
  if (version != "HTTP/1.1" && version != "HTTP/1.0") {
    const bool is_http = version.rfind("HTTP/", 0) == 0;
    refuse(is_http ? 505 : 400, "got the protocol " + quote(version) + ", expected HTTP/1.1");
  }
  request_.minor_version = version.back() - '0';
  const std::string without_host = take_host(target);
  if (!without_host.empty()) target = without_host;
  const bool is_all = target == "*" && request_.method == "OPTIONS";
  if (target.empty() || (target.front() != '/' && !is_all) || has_control(target) ||
      target.find(' ') != std::string_view::npos)
    refuse(400, "got the address " + quote(target) + ", expected a path");
  const std::size_t query = std::min(target.find('?'), target.size());
  const std::optional<std::string> path = percent_decode(target.substr(0, query));
  if (!path) refuse(400, "got the address " + quote(target) + ", expected two digits behind every %");
  request_.path = *path;
  if (query < target.size()) request_.query = target.substr(query + 1);
}

void RequestReader::read_header(const std::string& line) {
  if (request_.headers.size() == limits_.headers) {
    throw HttpError(431, "headers_too_large",
                    "got more than " + std::to_string(limits_.headers) + " headers, expected no more");
  }
  const auto [name, value] = split_header(line);
  request_.headers.emplace_back(lower_case(name), value);
}

// What decides how a request is understood must be said once.
void RequestReader::check_once() const {
  for (const char* name : {"host", "content-length", "transfer-encoding", "expect", "origin", "authorization",
                           "content-type", "content-encoding"}) {
    const auto is_name = [&](const auto& entry) { return entry.first == name; };
    if (std::count_if(request_.headers.begin(), request_.headers.end(), is_name) > 1)
      refuse(400, std::string(name) + ": got several, expected one");
  }
}

// The host of the address, where it had one, counts; the header does not (RFC 9112, section 3.2.2). No answer
// repeats what stood there.
void RequestReader::check_host() {
  const std::string* host = request_.header("host");
  if (host == nullptr && request_.minor_version > 0) refuse(400, "host: got none, expected one");
  if (host != nullptr && !is_authority(*host))
    refuse(400, "host: got something else, expected NAME or NAME:PORT");
  if (host_.empty()) return;
  if (host == nullptr) {
    request_.headers.emplace_back("host", host_);
  } else {
    for (auto& [name, value] : request_.headers) {
      if (name == "host") value = host_;
    }
  }
}

void RequestReader::finish_head() {
  check_once();
  check_host();
  const std::string* length = request_.header("content-length");
  const std::string* coding = request_.header("transfer-encoding");
  const std::string* expectation = request_.header("expect");
  if (length != nullptr && coding != nullptr)
    refuse(400, "got content-length and transfer-encoding, expected one of them");
  if (expectation != nullptr && lower_case(*expectation) != "100-continue")
    refuse(417, "expect: got " + quote(*expectation) + ", expected 100-continue");
  part_ = Part::length;
  left_ = 0;
  if (coding != nullptr) {
    if (request_.minor_version == 0) refuse(400, "transfer-encoding: got one with HTTP/1.0, expected none");
    if (lower_case(*coding) != "chunked")
      refuse(501, "transfer-encoding: got " + quote(*coding) + ", expected chunked");
    part_ = Part::chunk_size;
  }
  if (length != nullptr && !read_number(*length, 10, left_)) {
    const bool is_number = length->find_first_not_of("0123456789") == std::string::npos && !length->empty();
    if (is_number) refuse_body(limits_.body);
    refuse(400, "content-length: got " + quote(*length) + ", expected a number");
  }
  if (left_ > limits_.body) refuse_body(limits_.body);
  headers_ = std::exchange(head_, 0);
  state_ = State::body;
}

RequestReader::State RequestReader::read(std::string_view bytes) {
  buffer_.append(bytes);
  std::string line;
  while (state_ == State::waiting || state_ == State::head) {
    const bool is_first = request_.method.empty();
    if (state_ == State::waiting && position_ < buffer_.size()) state_ = State::head;
    if (!next_line(line, limits_.line, is_first ? 414 : 431, is_first ? "the address" : "a header")) break;
    if (line.empty() && is_first) {
      if (++empty_lines_ > kEmptyLines) refuse(400, "not a request that this server understands");
      if (position_ == buffer_.size()) state_ = State::waiting;
    } else if (line.empty()) {
      finish_head();
    } else if (is_first) {
      read_request_line(line);
    } else {
      read_header(line);
    }
  }
  drop_read_bytes();
  return state_;
}

void RequestReader::drop_read_bytes() {
  if (position_ == buffer_.size()) {
    std::string().swap(buffer_);  // a connection that waits keeps no room
  } else {
    buffer_.erase(0, position_);
  }
  position_ = 0;
}

void RequestReader::take_bytes(std::size_t count) {
  // Growing by itself, a body would take twice its room.
  if (part_ == Part::length && request_.body.empty() && count > 0) request_.body.reserve(left_);
  request_.body.append(buffer_, position_, count);
  position_ += count;
  left_ -= count;
}

// Reads a part of the body. False where more bytes are needed.
bool RequestReader::read_part() {
  std::string line;
  const std::size_t there = buffer_.size() - position_, before = head_;
  switch (part_) {
    case Part::length:
      take_bytes(std::min(left_, there));
      if (left_ == 0) state_ = State::complete;
      return false;
    case Part::chunk_size: {
      if (!next_line(line, kChunkLine, 400, "the line of a chunk")) return false;
      const std::string_view digits = trim(std::string_view(line).substr(0, line.find(';')));
      head_ = before + line.size() - digits.size();  // extensions count as headers do
      if (!read_number(digits, 16, left_) || has_control(line))
        refuse(400, "got the chunk " + quote(line) + ", expected its size");
      if (left_ > limits_.body - request_.body.size()) refuse_body(limits_.body);
      part_ = left_ == 0 ? Part::trailer : Part::chunk;
      return true;
    }
    case Part::chunk:
      take_bytes(std::min(left_, there));
      if (left_ == 0) part_ = Part::chunk_end;
      return left_ == 0;
    case Part::chunk_end:
      if (!next_line(line, 0, 400, "a chunk")) return false;
      if (!line.empty()) refuse(400, "got a chunk that is longer than its size");
      head_ = before;
      part_ = Part::chunk_size;
      return true;
    case Part::trailer:
      if (!next_line(line, limits_.line, 431, "a header")) return false;
      if (line.empty()) {
        state_ = State::complete;
      } else {
        split_header(line);  // checked, and dropped
      }
      return state_ != State::complete;
  }
  return false;
}

RequestReader::State RequestReader::read_body() {
  while (state_ == State::body && read_part()) {
  }
  drop_read_bytes();
  return state_;
}

HttpRequest RequestReader::take() {
  HttpRequest whole = std::exchange(request_, {});
  state_ = State::waiting;
  head_ = headers_ = 0;
  empty_lines_ = 0;
  return whole;
}

}  // namespace lamplighter
