#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "serve/http/request.h"

namespace lamplighter {

// Which names of this server, and which web pages, requests may come with. A page of another site can make a
// browser send requests: under its own name for this machine (DNS rebinding, seen in Host), or from its own
// address (seen in Origin).
class RequestOrigin {
 public:
  // hosts: names besides addresses and localhost; "*" is any. cors: the origin of pages that may ask; "*" is
  // any; empty: none but the server's own.
  RequestOrigin(std::vector<std::string> hosts, std::string cors);

  // Throws HttpError (403).
  void check(const HttpRequest& request) const;
  // Whether answers may name this host, which a request gave.
  bool knows(std::string_view host) const;

 private:
  std::vector<std::string> hosts_;  // in lower case
  std::string cors_;
};

// Without the port, and without the brackets of an IPv6 address; in lower case.
std::string host_name(std::string_view host);
// Whether a request's Host can be this name, which a person gave.
bool is_host(std::string_view name);
// What browsers send as the origin of pages at this address: lower case, no usual port, no slash at the end;
// "null" of pages without an address. Empty where pages of no address send the text.
std::string origin_of(std::string_view address);
// Whether a name is an IPv4 or IPv6 address.
bool is_address(const std::string& name);

}  // namespace lamplighter
