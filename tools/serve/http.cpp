#include "tools/serve/http.h"

#include "serve/http/request.h"
#include "tools/serve/routes.h"

namespace lamplighter::cli {
namespace {

// A thread for every image that a client waits for, and some for other requests.
HttpServerOptions server_options(const Service& service, const HttpOptions& options) {
  HttpServerOptions server;
  server.limits.body = options.body_bytes;
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
