#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "serve/http/server.h"

namespace lamplighter {
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

inline constexpr const char* kGet = "GET /small HTTP/1.1\r\nHost: x\r\n\r\n";
inline constexpr std::size_t kLarge = std::size_t{8} << 20;

// Answers by path.
class Handler : public HttpHandler {
 public:
  void admit(const HttpRequest& head) override {
    if (head.path == "/refused") throw HttpError(401, "invalid_api_key", "no key");
  }
  void answer(HttpRequest& request, HttpResponse& response) override {
    if (request.path == "/large") response.set_body(std::string(kLarge, 'x'), "text/plain");
    if (request.path == "/echo") response.set_body(request.body, "text/plain");
    if (request.path == "/quick") response.set_body("quick", "text/plain");
    if (request.path == "/small") response.set_body("small", "text/plain");
    if (request.path == "/stream") {
      response.type = "text/plain";
      response.stream = [this](const HttpResponse::Send& send) {
        for (int i = 0; i < 3; ++i) send("part" + std::to_string(i));
        while (endless && send(std::string(1000, 'x'))) {
        }
        ++ended;
      };
    }
    if (request.path == "/longer") {
      response.type = "text/plain";
      response.stream = [this](const HttpResponse::Send& send) {
        ++begun;
        for (int i = 0; i < 2; ++i) send(std::string(kLarge, 'x'));
        ++ended;
      };
    }
    if (request.path == "/wait") {
      ++begun;
      while (!request.is_client_gone()) std::this_thread::sleep_for(milliseconds(5));
      ++ended;
    }
  }
  bool is_quick(const HttpRequest& request) const override { return request.path == "/quick"; }
  std::string label(const std::string& path) const override { return path; }
  HttpResponse refuse(const HttpError& error, const std::string& /*path*/) override {
    ++refused;
    HttpResponse response;
    response.status = error.status();
    response.set_body(error.what(), "text/plain");
    return response;
  }
  void answered(const std::string& /*method*/, const std::string& /*label*/, int status,
                double /*s*/) override {
    last = status;
    ++all;
  }

  std::atomic<bool> endless{false};
  std::atomic<int> begun{0}, ended{0}, refused{0}, all{0}, last{0};
};

// A connection to a server of this machine.
class Client {
 public:
  explicit Client(int port, int buffer = 0) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    if (buffer > 0) ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  void send(const std::string& text) { ::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL); }
  void end() { ::shutdown(socket_.get(), SHUT_WR); }
  void close() { socket_.close(); }
  void take(std::size_t bytes) {
    std::string piece(bytes, ' ');
    ::recv(socket_.get(), piece.data(), bytes, MSG_DONTWAIT);
  }
  // What comes until the text ends in `last`, the connection does, or ten seconds pass.
  std::string receive(const std::string& last = "") {
    std::string text;
    char piece[4096];
    pollfd wanted{socket_.get(), POLLIN, 0};
    while (last.empty() || text.size() < last.size() ||
           text.compare(text.size() - last.size(), last.size(), last) != 0) {
      if (::poll(&wanted, 1, 10'000) <= 0) return text + "(nothing more)";
      const ssize_t got = ::recv(socket_.get(), piece, sizeof piece, 0);
      if (got <= 0) return text;
      text.append(piece, static_cast<std::size_t>(got));
    }
    return text;
  }

 private:
  Descriptor socket_;
};

// A server on a thread of its own.
class HttpServerTest : public ::testing::Test {
 protected:
  void start(const HttpServerOptions& options = {}) {
    server_ = std::make_unique<HttpServer>(handler_, options);
    port_ = server_->bind("127.0.0.1", 0);
    thread_ = std::thread([this] { server_->run(); });
  }
  void stop() {
    if (!thread_.joinable()) return;
    server_->stop();
    thread_.join();
    server_.reset();
  }
  void TearDown() override { stop(); }
  static bool soon(const std::function<bool()>& is_so) {
    for (int i = 0; i < 1000 && !is_so(); ++i) std::this_thread::sleep_for(milliseconds(10));
    return is_so();
  }
  std::string ask(const std::string& text) const {
    Client client(port_);
    client.send(text);
    client.end();
    return client.receive();
  }
  static int count(const std::string& text, const std::string& part) {
    int found = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
    return found;
  }

  Handler handler_;
  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
  int port_ = 0;
};

}  // namespace lamplighter
