#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "serve/http/exchange.h"
#include "serve/http/listener.h"
#include "serve/http/reader.h"
#include "serve/http/response.h"
#include "serve/http/workers.h"
#include "serve/http_error.h"

namespace lamplighter {

// What a server answers.
class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  // Called when the head of a request is there, before its body is read. Throws HttpError for a request that
  // is refused without it. Called by the thread that holds all connections: must be quick.
  virtual void admit(const HttpRequest& head) = 0;
  // Called by a thread of its own; `request` lives until the answer is out. Must not throw.
  virtual void answer(HttpRequest& request, HttpResponse& response) = 0;
  // Whether the answer takes no time and is no stream. The thread that holds all connections then gives it,
  // so that it does not wait for threads that other requests keep busy.
  virtual bool is_quick(const HttpRequest& request) const = 0;
  // The answer to a request that is refused; `path` is empty where none was read.
  virtual HttpResponse refuse(const HttpError& error, const std::string& path) = 0;
  // What a path is called in metrics and the log.
  virtual std::string label(const std::string& path) const = 0;
  // An answer is out, or its client has gone; seconds since the first byte of its request.
  virtual void answered(const std::string& method, const std::string& label, int status, double seconds) = 0;
};

struct HttpServerOptions {
  HttpLimits limits;
  std::size_t threads = 64;                           // that answer, at most
  std::size_t connections = 4096;                     // at once; fewer where the system allows fewer
  std::size_t unread_bytes = std::size_t{64} << 20;   // of requests that are not complete, of all connections
  std::size_t body_bytes = std::size_t{32} << 20;     // of requests in work
  std::size_t unsent_bytes = std::size_t{256} << 20;  // of answers
  std::size_t least_taken = std::size_t{32} << 10;    // of an answer in the time `send`
  // How long a connection may take: for the first byte of a request, for its head, for its body, for the
  // next bytes of an answer, and after stop() for the answers in work.
  std::chrono::milliseconds idle{75'000}, head{10'000}, body{60'000}, send{30'000}, farewell{5'000};
};

// An HTTP/1.1 server. One thread holds all connections, so that an idle or slow one costs no thread; others
// answer requests that are complete. All limits hold before a handler sees a request.
class HttpServer {
 public:
  HttpServer(HttpHandler& handler, const HttpServerOptions& options);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Returns the port. Throws Error(ExitCode::usage).
  int bind(const std::string& host, int port);
  // Holds the connections until stop() is called from another thread. Then it ends those that wait, and the
  // others when their answers are out or the time for it has passed.
  void run();
  void stop();

 private:
  struct Connection;
  using Clock = std::chrono::steady_clock;
  using Number = std::uint64_t;

  void accept_all();
  bool make_room();
  void on_event(Connection& connection, std::uint32_t events);
  void read_from(Connection& connection);
  void read_requests(Connection& connection);
  void dispatch(Connection& connection);
  void work(Exchange& exchange, HttpRequest& request);
  void refuse(Connection& connection, const HttpError& error);
  void send_to(Connection& connection);
  void take_answer(Connection& connection);
  void end_answer(Connection& connection);
  void linger(Connection& connection);
  void drain(Connection& connection);
  void watch(Connection& connection);
  void listen_for(bool accepts);
  void close(Connection& connection);
  void limit_unread(Connection& newest);
  void limit_unsent();
  bool is_overdue(const Connection& connection, Clock::time_point now) const;
  void check_times();
  void turn(std::chrono::milliseconds most);
  void count_unread(Connection& connection);
  void hold_body(Connection& connection, std::size_t bytes);
  void wake(Number number);
  void take_woken();

  HttpHandler& handler_;
  HttpServerOptions options_;
  Listener listener_{Descriptor(-1)};
  Descriptor poll_, wakes_;
  std::unordered_map<Number, std::unique_ptr<Connection>> connections_;
  std::vector<Number> closed_;  // in this round
  Number numbers_ = 0;
  bool accepts_ = true;
  Clock::time_point next_check_ = Clock::now();
  std::size_t unread_ = 0, held_bodies_ = 0, unsent_ = 0;
  // Since free memory was given back:
  bool held_much_ = false;
  std::size_t answered_ = 0;  // requests
  std::atomic<bool> stopping_{false};
  std::mutex woken_mutex_;
  std::vector<Number> woken_;
  Workers workers_;  // last: its threads use the rest
};

}  // namespace lamplighter
