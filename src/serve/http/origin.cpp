#include "serve/http/origin.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <utility>

#include "serve/http_error.h"

namespace lamplighter {

std::string host_name(std::string_view host) {
  std::string name = lower_case(host);
  const std::size_t bracket = name.find(']');
  const bool is_v6 = !name.empty() && name.front() == '[' && bracket != std::string::npos;
  const std::size_t colon = name.find(':', is_v6 ? bracket : 0);
  if (colon != std::string::npos) name.resize(colon);
  if (is_v6) name = name.substr(1, bracket - 1);
  if (!is_v6 && !name.empty() && name.back() == '.') name.pop_back();  // the root of all names
  return name;
}

bool is_host(std::string_view name) {
  return is_authority(name) && !host_name(name).empty();
}

std::string origin_of(std::string_view address) {
  std::string origin = lower_case(address);
  if (origin == "null") return origin;
  if (!origin.empty() && origin.back() == '/') origin.pop_back();
  const std::size_t end = origin.find("://");
  if (end == std::string::npos) return "";
  const std::string scheme = origin.substr(0, end), host = origin.substr(end + 3);
  if (scheme.empty() ||
      scheme.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789+-.") != std::string::npos ||
      !is_host(host))
    return "";
  const std::string usual = scheme == "http" ? ":80" : scheme == "https" ? ":443" : ":";
  const std::size_t front = host.size() - std::min(host.size(), usual.size());
  return host.substr(front) == usual ? scheme + "://" + host.substr(0, front) : origin;
}

bool is_address(const std::string& name) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  const std::string numbers = name.substr(0, name.find('%'));  // the zone of a local address
  return ::inet_pton(AF_INET, name.c_str(), bytes.data()) == 1 ||
         ::inet_pton(AF_INET6, numbers.c_str(), bytes.data()) == 1;
}

namespace {

// Some browsers send forms of other sites without an Origin, and say so in another header.
bool is_foreign_form(const HttpRequest& request) {
  const std::string* site = request.header("sec-fetch-site");
  return request.method == "POST" && site != nullptr && *site == "cross-site";
}

}  // namespace

RequestOrigin::RequestOrigin(std::vector<std::string> hosts, std::string cors)
    : hosts_(std::move(hosts)), cors_(std::move(cors)) {
  for (std::string& host : hosts_) host = host == "*" ? host : host_name(host);
}

bool RequestOrigin::knows(std::string_view host) const {
  const std::string name = host_name(host);
  const auto is_listed = [&](std::string_view known) {
    return std::find(hosts_.begin(), hosts_.end(), known) != hosts_.end();
  };
  constexpr std::string_view local = ".localhost";  // RFC 6761: always this machine
  const bool is_local =
      name == "localhost" || (name.size() > local.size() && name.substr(name.size() - local.size()) == local);
  return is_local || is_address(name) || is_listed(name) || is_listed("*");
}

void RequestOrigin::check(const HttpRequest& request) const {
  const std::string* host = request.header("host");
  if (host != nullptr && !knows(*host)) {
    throw HttpError(403, "unknown_host",
                    "host: got a name that this server does not know, expected an address, localhost, or a "
                    "name of --host or --allow-host");
  }
  const std::string* origin = request.header("origin");
  if (cors_ == "*" || (origin == nullptr && !is_foreign_form(request))) return;
  if (origin != nullptr && !cors_.empty() && *origin == cors_) return;
  if (origin != nullptr && host != nullptr && (*origin == "http://" + *host || *origin == "https://" + *host))
    return;
  throw HttpError(403, "foreign_origin",
                  "origin: got a page of another site, expected this server's own or the one of --cors");
}

}  // namespace lamplighter
