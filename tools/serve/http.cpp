#include "tools/serve/http.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "serve/http/request.h"
#include "tools/serve/routes.h"

namespace lamplighter::cli {
namespace {

// A thread for every image that a client waits for, and some for other requests.
HttpServerOptions server_options(const Service& service, const HttpOptions& options) {
  HttpServerOptions server;
  server.limits.body = options.body_bytes;
  // Two requests of the largest size fit in; one that comes in chunks may take twice its room.
  const std::size_t largest = std::min(options.body_bytes, std::numeric_limits<std::size_t>::max() / 4);
  server.body_bytes = std::max(server.body_bytes, 2 * largest);
  server.unread_bytes = std::max(server.unread_bytes, 4 * largest);
  server.threads = 64 + service.models().size() * (service.options.queue + 16);
  return server;
}

}  // namespace

std::string HttpOptions::authority(int bound_port) const {
  return authority_of(host, bound_port);
}

Http::Http(Service& service, const HttpOptions& options, Terminal& terminal)
    : routes_(std::make_unique<Routes>(service, options, terminal)),
      server_(*routes_, server_options(service, options)) {}
Http::~Http() = default;

int Http::bind() {
  return routes_->port = server_.bind(routes_->options.host, routes_->options.port);
}

}  // namespace lamplighter::cli
