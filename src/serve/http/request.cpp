#include "serve/http/request.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace lamplighter {

const std::string* HttpRequest::header(std::string_view name) const {
  const auto found =
      std::find_if(headers.begin(), headers.end(), [&](const auto& entry) { return entry.first == name; });
  return found == headers.end() ? nullptr : &found->second;
}

std::optional<std::string> HttpRequest::parameter(std::string_view name) const {
  for (std::string_view rest = query; !rest.empty();) {
    const std::string_view pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), pair.size() + 1));
    const std::size_t middle = pair.find('=');
    if (pair.substr(0, middle) != name) continue;
    return percent_decode(middle == std::string_view::npos ? "" : pair.substr(middle + 1), true);
  }
  return std::nullopt;
}

bool HttpRequest::keeps_connection() const {
  std::string connection;  // of all headers of this name, which may come more than once
  for (const auto& [name, value] : headers) {
    if (name == "connection") connection += lower_case(value) + ",";
  }
  if (connection.find("close") != std::string::npos) return false;
  return minor_version > 0 || connection.find("keep-alive") != std::string::npos;
}

bool HttpRequest::has_body() const {
  const std::string* length = header("content-length");
  return header("transfer-encoding") != nullptr || (length != nullptr && *length != "0");
}

std::optional<std::string> percent_decode(std::string_view text, bool is_query) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += is_query && text[i] == '+' ? ' ' : text[i];
      continue;
    }
    unsigned value = 0;
    if (text.size() - i < 3) return std::nullopt;
    const char* digits = text.data() + i + 1;
    const auto [end, error] = std::from_chars(digits, digits + 2, value, 16);
    if (error != std::errc() || end != digits + 2) return std::nullopt;
    decoded += static_cast<char>(value);
    i += 2;
  }
  return decoded;
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

bool is_authority(std::string_view text) {
  const auto has_only = [](std::string_view part, std::string_view others) {
    return std::all_of(part.begin(), part.end(), [&](unsigned char c) {
      return (c < 0x80 && std::isalnum(c) != 0) ||
             others.find(static_cast<char>(c)) != std::string_view::npos;
    });
  };
  const bool is_v6 = !text.empty() && text.front() == '[';
  const std::size_t end = is_v6 ? text.find(']') : text.find(':');
  if (is_v6 && end == std::string_view::npos) return false;
  const std::string_view name = is_v6 ? text.substr(1, end - 1) : text.substr(0, end);
  std::string_view port = text.substr(std::min(text.size(), is_v6 ? end + 1 : end));
  if (!has_only(name, is_v6 ? ":.%-_~" : ".-_~")) return false;
  if (port.empty()) return true;
  if (port.front() != ':') return false;
  port.remove_prefix(1);
  return port.size() <= 5 && port.find_first_not_of("0123456789") == std::string_view::npos;
}

std::string authority_of(const std::string& host, int port) {
  const bool has_colons = host.find(':') != std::string::npos;
  return (has_colons ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

}  // namespace lamplighter
