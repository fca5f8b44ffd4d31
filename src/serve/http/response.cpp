#include "serve/http/response.h"

#include <array>
#include <cstdio>
#include <ctime>

namespace lamplighter {
namespace {

const char* reason_of(int status) {
  constexpr std::array<std::pair<int, const char*>, 23> kReasons{{{100, "Continue"},
                                                                  {200, "OK"},
                                                                  {204, "No Content"},
                                                                  {400, "Bad Request"},
                                                                  {401, "Unauthorized"},
                                                                  {403, "Forbidden"},
                                                                  {404, "Not Found"},
                                                                  {405, "Method Not Allowed"},
                                                                  {408, "Request Timeout"},
                                                                  {413, "Content Too Large"},
                                                                  {414, "URI Too Long"},
                                                                  {415, "Unsupported Media Type"},
                                                                  {417, "Expectation Failed"},
                                                                  {421, "Misdirected Request"},
                                                                  {422, "Unprocessable Content"},
                                                                  {429, "Too Many Requests"},
                                                                  {431, "Request Header Fields Too Large"},
                                                                  {499, "Client Closed Request"},
                                                                  {500, "Internal Server Error"},
                                                                  {501, "Not Implemented"},
                                                                  {503, "Service Unavailable"},
                                                                  {504, "Gateway Timeout"},
                                                                  {505, "HTTP Version Not Supported"}}};
  for (const auto& [number, reason] : kReasons) {
    if (number == status) return reason;
  }
  return "Unknown";
}

std::string date() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  constexpr std::array kDays{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr std::array kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                               "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%s, %02d %s %d %02d:%02d:%02d GMT",
                kDays.at(static_cast<std::size_t>(parts.tm_wday)), parts.tm_mday,
                kMonths.at(static_cast<std::size_t>(parts.tm_mon)), parts.tm_year + 1900, parts.tm_hour,
                parts.tm_min, parts.tm_sec);
  return text.data();
}

void add(std::string& head, std::string_view name, std::string_view value) {
  head.append(name).append(": ");
  for (const char c : value) head += c >= ' ' && c <= '~' ? c : '?';
  head += "\r\n";
}

}  // namespace

std::string encode_head(const HttpResponse& response, bool keeps_connection, bool chunked) {
  std::string head =
      "HTTP/1.1 " + std::to_string(response.status) + " " + reason_of(response.status) + "\r\n";
  add(head, "Date", date());
  add(head, "Connection", keeps_connection ? "keep-alive" : "close");
  if (!response.type.empty()) add(head, "Content-Type", response.type);
  add(head, "X-Content-Type-Options", "nosniff");
  for (const auto& [name, value] : response.headers) add(head, name, value);
  if (response.stream) {
    if (chunked) add(head, "Transfer-Encoding", "chunked");
  } else if (response.status != 204) {
    add(head, "Content-Length", std::to_string(response.body ? response.body->size() : 0));
  }
  return head + "\r\n";
}

std::string encode_chunk(std::string_view part) {
  std::array<char, 24> size{};
  std::snprintf(size.data(), size.size(), "%zx\r\n", part.size());
  return std::string(size.data()).append(part).append("\r\n");
}

}  // namespace lamplighter
