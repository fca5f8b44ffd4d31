#include "tools/serve/client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

namespace lamplighter::cli {
namespace {

// Numeric address and port of one end of a socket; port -1 where it has none.
std::pair<std::string, int> end_of(int socket, decltype(::getpeername)* ask) {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  auto* address = reinterpret_cast<sockaddr*>(&storage);
  if (ask(socket, address, &length) != 0) return {"", -1};
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (storage.ss_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(&storage);
    ::inet_ntop(AF_INET, &v4->sin_addr, text.data(), text.size());
    return {text.data(), ntohs(v4->sin_port)};
  }
  if (storage.ss_family != AF_INET6) return {"", -1};
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&storage);
  ::inet_ntop(AF_INET6, &v6->sin6_addr, text.data(), text.size());
  return {text.data(), ntohs(v6->sin6_port)};
}

}  // namespace

Client::Client(const std::string& address, int port, int local_port) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", ignored)) {
    const int socket = std::stoi(entry.path().filename().string());
    if (end_of(socket, ::getpeername) != std::pair(address, port)) continue;
    if (local_port > 0 && end_of(socket, ::getsockname).second != local_port) continue;
    socket_ = socket;
    return;
  }
}

bool Client::is_gone() const {
  if (socket_ < 0) return false;
  char byte = 0;
  const ssize_t got = ::recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

}  // namespace lamplighter::cli
