#include "serve/http/listener.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>
#include <utility>
#include <vector>

#include "base/message.h"
#include "lamplighter/error.h"
#include "serve/http/request.h"

namespace lamplighter {
namespace {

constexpr int kBacklog = 4096;  // connections that wait to be accepted

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

Addresses find_addresses(const std::string& host, int port) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) found = nullptr;
  return {found, freeaddrinfo};
}

Descriptor bind_to(const addrinfo& address) {
  Descriptor socket(
      ::socket(address.ai_family, address.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, address.ai_protocol));
  if (!socket.valid()) return socket;
  // Connections of a server that has ended do not keep the port. SO_REUSEPORT would share it.
  const int yes = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (::bind(socket.get(), address.ai_addr, address.ai_addrlen) != 0) socket.close();
  return socket;
}

int port_of(const Descriptor& socket) {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&storage), &length) != 0) return 0;
  return ntohs(storage.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_port
                                             : reinterpret_cast<const sockaddr_in*>(&storage)->sin_port);
}

// Whether the host is found and one of its addresses belongs to this machine, whatever the port.
bool is_own(const std::string& host) {
  const Addresses found = find_addresses(host, 0);
  for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) {
    if (bind_to(*one).valid()) return true;
  }
  return false;
}

}  // namespace

// Listens on the first address of a name. The port must be free on the others as well: where localhost is ::1
// and 127.0.0.1, a second server would find the latter free, and its clients the first server.
Listener listen_on(const std::string& host, int port) {
  const Addresses found = find_addresses(host, port);
  std::vector<Descriptor> bound;
  bool is_taken = false;
  for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) {
    Descriptor socket = bind_to(*one);
    is_taken = is_taken || (!socket.valid() && errno == EADDRINUSE);
    if (socket.valid()) bound.push_back(std::move(socket));
  }
  if (!is_taken && !bound.empty() && ::listen(bound.front().get(), kBacklog) == 0) {
    const int own = port_of(bound.front());
    return {std::move(bound.front()), own};
  }
  if (!is_own(host)) {
    throw Error(ExitCode::usage,
                "--host: got " + quote(host) + ", expected a name or an address of this machine");
  }
  throw Error(ExitCode::usage, "--port: cannot listen on " + authority_of(host, port) +
                                   ": another program uses the port, or this user may not");
}

}  // namespace lamplighter
