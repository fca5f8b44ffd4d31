#include "serve/http/server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/memory.h"
#include "lamplighter/error.h"
#include "serve/http/connection.h"

namespace lamplighter {
namespace {

constexpr std::uint64_t kListener = 0, kWakes = 1, kFirst = 2;  // numbers in events
constexpr auto kCheck = std::chrono::milliseconds(250);         // how often times are looked at
constexpr auto kLinger = std::chrono::seconds(2);
constexpr auto kSlow = std::chrono::seconds(1);  // for a part of an answer, when there is no room
constexpr std::size_t kReserved = 256;           // descriptors for other things than connections
constexpr int kAccepted = 64;                    // in one go
constexpr std::size_t kCrowd = 64;               // answers

std::string address_of(const sockaddr_storage& storage) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (storage.ss_family == AF_INET6) {
    ::inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_addr, text.data(),
                text.size());
  } else {
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(&storage)->sin_addr, text.data(), text.size());
  }
  return text.data();
}

// Raises the limit on descriptors as far as it goes. Returns the number of connections that it allows.
std::size_t allowed_connections(std::size_t wanted) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted;
  const auto needed = static_cast<rlim_t>(wanted + kReserved);
  if (limit.rlim_cur < needed) {
    limit.rlim_cur = std::min(limit.rlim_max, needed);
    ::setrlimit(RLIMIT_NOFILE, &limit);
    ::getrlimit(RLIMIT_NOFILE, &limit);
  }
  const auto most = static_cast<std::size_t>(std::min(limit.rlim_cur, needed));
  return std::min(wanted, std::max<std::size_t>(16, most - std::min(most, kReserved)));
}

bool is_readable(int descriptor) {
  pollfd wanted{descriptor, POLLIN, 0};
  return ::poll(&wanted, 1, 0) > 0;
}

bool set_events(int poll, int descriptor, std::uint64_t number, std::uint32_t events, int operation) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = number;
  return ::epoll_ctl(poll, operation, descriptor, &event) == 0;
}

void require(bool done) {
  if (!done) throw Error(ExitCode::device, "serve: epoll: " + system_reason());
}

}  // namespace

HttpServer::HttpServer(HttpHandler& handler, const HttpServerOptions& options)
    : handler_(handler),
      options_(options),
      poll_(::epoll_create1(EPOLL_CLOEXEC)),
      wakes_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      numbers_(kFirst),
      workers_(options.threads) {
  require(poll_.valid() && wakes_.valid() &&
          set_events(poll_.get(), wakes_.get(), kWakes, EPOLLIN, EPOLL_CTL_ADD));
  options_.connections = allowed_connections(options.connections);
}

HttpServer::~HttpServer() {
  for (auto& [number, connection] : connections_) close(*connection);
}

int HttpServer::bind(const std::string& host, int port) {
  listener_ = listen_on(host, port);
  require(set_events(poll_.get(), listener_.socket.get(), kListener, EPOLLIN, EPOLL_CTL_ADD));
  return listener_.port;
}

void HttpServer::stop() {
  stopping_ = true;
  wake(kWakes);
}

void HttpServer::run() {
  while (!stopping_) turn(kCheck);
  listener_.socket.close();
  const Clock::time_point end = Clock::now() + options_.farewell;
  for (auto& [number, connection] : connections_) {
    if (connection->phase == Connection::Phase::reading) close(*connection);
  }
  do {
    turn(kCheck / 10);
  } while (!connections_.empty() && Clock::now() < end);
  for (auto& [number, connection] : connections_) close(*connection);
}

void HttpServer::turn(std::chrono::milliseconds most) {
  std::array<epoll_event, 256> events{};
  const int count = ::epoll_wait(poll_.get(), events.data(), static_cast<int>(events.size()),
                                 static_cast<int>(most.count()));
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events.at(static_cast<std::size_t>(i));
    const auto found = connections_.find(event.data.u64);
    if (event.data.u64 == kListener) {
      accept_all();
    } else if (event.data.u64 == kWakes) {
      take_woken();
    } else if (found != connections_.end()) {
      on_event(*found->second, event.events);
    }
  }
  check_times();
  for (const Number number : std::exchange(closed_, {})) connections_.erase(number);
}

void HttpServer::on_event(Connection& connection, std::uint32_t events) {
  using Phase = Connection::Phase;
  if (connection.phase == Phase::closed) return;
  if ((events & (EPOLLERR | EPOLLHUP)) != 0) return close(connection);
  if (connection.phase == Phase::reading) return read_from(connection);
  if (connection.phase == Phase::lingering) return drain(connection);
  if ((events & EPOLLRDHUP) != 0) {
    connection.half_closed = true;
    *connection.exchange->gone = true;
    watch(connection);
  }
  if ((events & EPOLLOUT) != 0) send_to(connection);
}

void HttpServer::accept_all() {
  for (int i = 0; i < kAccepted && !stopping_; ++i) {
    sockaddr_storage address{};
    socklen_t length = sizeof address;
    if (connections_.size() - closed_.size() >= options_.connections) {
      if (!is_readable(listener_.socket.get())) return;  // nobody needs room
      if (!make_room()) return listen_for(false);
    }
    Descriptor socket(::accept4(listener_.socket.get(), reinterpret_cast<sockaddr*>(&address), &length,
                                SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.valid()) {
      const bool is_full = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
      if (is_full && !make_room()) listen_for(false);
      return;
    }
    const int yes = 1;
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    const Number number = numbers_++;
    auto added =
        std::make_unique<Connection>(number, std::move(socket), address_of(address), options_.limits);
    added->watched = EPOLLIN;
    if (!set_events(poll_.get(), added->socket.get(), number, EPOLLIN, EPOLL_CTL_ADD)) continue;
    connections_[number] = std::move(added);
  }
}

// Ends the connection that has waited longest without a request, else the one that takes longest to send
// one, else the one that is slowest to take its answer. False where all others wait for their answers.
bool HttpServer::make_room() {
  using Phase = Connection::Phase;
  const Clock::time_point now = Clock::now();
  const auto key = [](const Connection& one) {
    return std::pair(one.is_waiting() ? 0 : one.phase == Phase::answering ? 2 : 1, one.since);
  };
  Connection* oldest = nullptr;
  for (const auto& [number, connection] : connections_) {
    const bool is_slow = connection->unsent > 0 && now - connection->since > kSlow;
    if (connection->phase == Phase::closed || (connection->phase == Phase::answering && !is_slow)) continue;
    if (oldest == nullptr || key(*connection) < key(*oldest)) oldest = connection.get();
  }
  if (oldest != nullptr) close(*oldest);
  return oldest != nullptr;
}

void HttpServer::listen_for(bool accepts) {
  if (accepts == accepts_ || stopping_) return;
  accepts_ = accepts;
  set_events(poll_.get(), listener_.socket.get(), kListener, accepts ? std::uint32_t{EPOLLIN} : 0U,
             EPOLL_CTL_MOD);
}

void HttpServer::watch(Connection& connection) {
  std::uint32_t events = EPOLLIN;
  if (connection.phase == Connection::Phase::closed) return;
  if (connection.phase == Connection::Phase::answering) {
    events = connection.out.empty() ? 0U : std::uint32_t{EPOLLOUT};
    if (!connection.half_closed) events |= EPOLLRDHUP;
  }
  if (events == connection.watched) return;
  connection.watched = events;
  if (!set_events(poll_.get(), connection.socket.get(), connection.number, events, EPOLL_CTL_MOD))
    close(connection);
}

void HttpServer::close(Connection& connection) {
  if (connection.phase == Connection::Phase::closed) return;
  if (connection.exchange) {
    connection.exchange->abandon();
    const Exchange& left = *connection.exchange;
    ++answered_;
    handler_.answered(left.method, left.label, 499, left.watch.elapsed() / 1000);
    connection.exchange.reset();
  }
  unread_ -= connection.unread;
  held_bodies_ -= connection.body;
  unsent_ -= connection.unsent;
  connection.unread = connection.body = connection.unsent = 0;
  connection.out.clear();
  connection.phase = Connection::Phase::closed;
  connection.socket.close();
  closed_.push_back(connection.number);
}

void HttpServer::wake(Number number) {
  {
    const std::lock_guard lock(woken_mutex_);
    woken_.push_back(number);
  }
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wakes_.get(), &one, sizeof one);
}

void HttpServer::take_woken() {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = ::read(wakes_.get(), &count, sizeof count);
  std::vector<Number> woken;
  {
    const std::lock_guard lock(woken_mutex_);
    woken.swap(woken_);
  }
  for (const Number number : woken) {
    const auto found = connections_.find(number);
    if (found != connections_.end()) take_answer(*found->second);
  }
  limit_unsent();
}

// Clients that do not take their answers cost memory: the one that has taken nothing for longest has to go.
void HttpServer::limit_unsent() {
  while (unsent_ > options_.unsent_bytes) {
    Connection* slowest = nullptr;
    for (const auto& [number, connection] : connections_) {
      if (connection->unsent > 0 && (slowest == nullptr || connection->since < slowest->since))
        slowest = connection.get();
    }
    if (slowest == nullptr) return;
    close(*slowest);
  }
}

bool HttpServer::is_overdue(const Connection& connection, Clock::time_point now) const {
  const auto time = now - connection.since;
  switch (connection.phase) {
    case Connection::Phase::reading:
      return time > (connection.is_waiting() ? options_.idle
                     : connection.admitted   ? options_.body
                                             : options_.head);
    case Connection::Phase::answering:
      return !connection.out.empty() && time > options_.send;
    case Connection::Phase::lingering:
      return time > kLinger;
    case Connection::Phase::closed:
      break;
  }
  return false;
}

void HttpServer::check_times() {
  const Clock::time_point now = Clock::now();
  if (now < next_check_) return;
  next_check_ = now + kCheck;
  bool is_quiet = true;
  for (const auto& [number, connection] : connections_) {
    is_quiet = is_quiet && connection->phase != Connection::Phase::answering;
    if (!is_overdue(*connection, now)) continue;
    if (connection->phase == Connection::Phase::reading && !connection->is_waiting()) {
      refuse(*connection, HttpError(408, "request_timeout", "the request took too long to come"));
    } else {
      close(*connection);
    }
  }
  // What a crowd or its large requests have taken is given back when they have gone.
  constexpr std::size_t much = std::size_t{8} << 20;
  const std::size_t held = unread_ + held_bodies_ + unsent_;
  if (held > much) held_much_ = true;
  if ((held_much_ && held < much / 8) || (is_quiet && answered_ >= kCrowd)) {
    held_much_ = false;
    answered_ = 0;
    release_free_memory();
  }
  if (!accepts_ && (connections_.size() - closed_.size() < options_.connections || make_room()))
    listen_for(true);
}

}  // namespace lamplighter
