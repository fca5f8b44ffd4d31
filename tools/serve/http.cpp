#include "tools/serve/http.h"

#include "base/message.h"
#include "lamplighter/error.h"

namespace lamplighter::cli {

std::string HttpOptions::authority(int bound_port) const {
  const bool v6 = host.find(':') != std::string::npos;
  return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(bound_port);
}

}  // namespace lamplighter::cli

#if defined(LAMPLIGHTER_WITH_HTTP)

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/serve/routes.h"

namespace lamplighter::cli {

constexpr int kKnocking = 512;  // connections that wait to be taken

namespace {

// Whether the host is found and one of its addresses belongs to this machine, whatever the port.
bool is_own(const std::string& host) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  if (getaddrinfo(host.c_str(), "0", &hints, &found) != 0) return false;
  bool own = false;
  for (const addrinfo* one = found; one != nullptr && !own; one = one->ai_next) {
    const int place = socket(one->ai_family, one->ai_socktype, one->ai_protocol);
    if (place < 0) continue;
    own = ::bind(place, one->ai_addr, one->ai_addrlen) == 0;
    close(place);
  }
  freeaddrinfo(found);
  return own;
}

}  // namespace

bool has_http() {
  return true;
}

Http::Http(Service& service, const HttpOptions& options, Terminal& terminal)
    : routes_(std::make_unique<Routes>(service, options, terminal)) {}
Http::~Http() = default;

int Http::bind() {
  const HttpOptions& options = routes_->options;
  const bool free = options.port == 0;
  socket_t listener = INVALID_SOCKET;
  routes_->server.set_socket_options([&](socket_t socket) {
    httplib::default_socket_options(socket);
    listener = socket;
  });
  const int port = free ? routes_->server.bind_to_any_port(options.host)
                        : (routes_->server.bind_to_port(options.host, options.port) ? options.port : -1);
  if (port < 0) {
    if (!is_own(options.host))
      throw Error(ExitCode::usage,
                  "--host: got " + quote(options.host) + ", expected a name or an address of this machine");
    throw Error(ExitCode::usage, "--port: cannot listen on " + options.host + ":" +
                                     std::to_string(options.port) + ": the port is taken or not ours");
  }
  // The library lets five clients knock at a time and turns others away.
  listen(listener, kKnocking);
  routes_->server.set_socket_options(httplib::default_socket_options);
  return routes_->port = port;
}

void Http::run() {
  routes_->server.listen_after_bind();
}

void Http::stop() {
  routes_->server.stop();
}

}  // namespace lamplighter::cli

#else

namespace lamplighter::cli {

class Routes {};

bool has_http() {
  return false;
}
Http::Http(Service& /*service*/, const HttpOptions& /*options*/, Terminal& /*terminal*/) {}
Http::~Http() = default;
int Http::bind() {
  return -1;
}
void Http::run() {}
void Http::stop() {}

}  // namespace lamplighter::cli

#endif
