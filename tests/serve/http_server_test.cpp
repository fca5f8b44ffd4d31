#include "serve/http/server.h"

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
#include <vector>

namespace lamplighter {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr const char* kGet = "GET /small HTTP/1.1\r\nHost: x\r\n\r\n";
constexpr std::size_t kLarge = std::size_t{8} << 20;

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

TEST_F(HttpServerTest, AnswersInOrderOnOneConnection) {
  start();
  const std::string post = "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n";
  const std::string answers = ask(kGet + post + "aaaa" + post + "bbbb" + kGet);
  EXPECT_EQ(count(answers, "HTTP/1.1 200 OK"), 4);
  EXPECT_LT(answers.find("aaaa"), answers.find("bbbb"));
  EXPECT_TRUE(soon([&] { return handler_.all == 4; }));
  Client client(port_);
  for (int i = 0; i < 3; ++i) {
    client.send(kGet);
    EXPECT_NE(client.receive("small").find("keep-alive"), std::string::npos);
  }
}

TEST_F(HttpServerTest, StreamsInChunksOrToTheEnd) {
  start();
  const std::string chunks = ask("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_NE(chunks.find("\r\n\r\n5\r\npart0\r\n5\r\npart1\r\n5\r\npart2\r\n0\r\n\r\n"), std::string::npos)
      << chunks;
  const std::string plain = ask("GET /stream HTTP/1.0\r\n\r\n");
  EXPECT_NE(plain.find("\r\n\r\npart0part1part2"), std::string::npos) << plain;
  const std::string head = ask("HEAD /small HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_NE(head.find("Content-Length: 5\r\n"), std::string::npos);
  EXPECT_EQ(head.find("small"), std::string::npos);
}

TEST_F(HttpServerTest, ARefusalComesBeforeTheBodyAndEndsTheConnection) {
  start();
  Client client(port_);
  client.send("POST /refused HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n");
  EXPECT_NE(client.receive().find("HTTP/1.1 401"), std::string::npos);
  EXPECT_NE(ask("nonsense\r\n\r\n").find("HTTP/1.1 400"), std::string::npos);
  EXPECT_TRUE(soon([&] { return handler_.refused == 2; }));
}

TEST_F(HttpServerTest, SlowRequestsAndIdleConnectionsEnd) {
  HttpServerOptions options;
  options.head = options.body = milliseconds(300);
  options.idle = milliseconds(600);
  start(options);
  Client head(port_), body(port_), idle(port_);
  head.send("GET / HT");
  body.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc");
  EXPECT_NE(head.receive().find("HTTP/1.1 408"), std::string::npos);
  EXPECT_NE(body.receive().find("HTTP/1.1 408"), std::string::npos);
  EXPECT_EQ(idle.receive(), "");
}

TEST_F(HttpServerTest, AHandlerSeesThatItsClientHasGone) {
  start();
  {
    Client client(port_);
    client.send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
    std::this_thread::sleep_for(milliseconds(50));
    EXPECT_EQ(handler_.ended, 0);
  }
  EXPECT_TRUE(soon([&] { return handler_.ended == 1; }));
  EXPECT_NE(ask(kGet).find("small"), std::string::npos);
}

TEST_F(HttpServerTest, WhoReadsNothingIsLetGo) {
  HttpServerOptions options;
  options.send = milliseconds(300);
  start(options);
  handler_.endless = true;
  Client stream(port_, 1024), large(port_, 1024);
  stream.send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
  large.send("GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(soon([&] { return handler_.ended == 1 && handler_.all == 2; }));
  EXPECT_EQ(handler_.last, 499);
}

TEST_F(HttpServerTest, AnswersThatNobodyTakesAreBounded) {
  HttpServerOptions options;
  options.unsent_bytes = 3 * kLarge;
  start(options);
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 8; ++i) {
    clients.push_back(std::make_unique<Client>(port_, 1024));
    clients.back()->send("GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
  }
  EXPECT_TRUE(soon([&] { return handler_.all >= 5; })) << "the slowest have gone";
  EXPECT_NE(ask(kGet).find("small"), std::string::npos);
}

TEST_F(HttpServerTest, RequestsThatAreReadAreBounded) {
  HttpServerOptions options;
  options.unread_bytes = 300'000;
  start(options);
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 8; ++i) {
    clients.push_back(std::make_unique<Client>(port_));
    clients.back()->send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n" +
                         std::string(99'000, 'x'));
  }
  EXPECT_TRUE(soon([&] { return handler_.refused >= 6; })) << "a body counts as large as it will be";
  const std::string small =
      "POST /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc";
  EXPECT_NE(ask(small).find("200 "), std::string::npos) << "those that take longest have gone";
}

TEST_F(HttpServerTest, BodiesInWorkAreBoundedAndStopNoOthers) {
  HttpServerOptions options;
  options.body_bytes = options.unread_bytes = 300'000;
  start(options);
  const std::string body =
      " HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n" + std::string(100'000, 'x');
  std::vector<std::unique_ptr<Client>> waiting;
  for (int i = 0; i < 3; ++i) {
    waiting.push_back(std::make_unique<Client>(port_));
    waiting.back()->send("POST /wait" + body);
  }
  EXPECT_TRUE(soon([&] { return handler_.begun == 3; }));
  EXPECT_NE(ask("POST /echo" + body).find("503 "), std::string::npos);
  EXPECT_NE(ask(kGet).find("small"), std::string::npos);
  waiting.clear();
  EXPECT_TRUE(soon([&] { return handler_.ended == 3; }));
  EXPECT_NE(ask("POST /echo" + body).find("200 "), std::string::npos);
}

TEST_F(HttpServerTest, WhoTakesLittleIsLetGo) {
  HttpServerOptions options;
  options.send = milliseconds(500);
  start(options);
  Client client(port_, 1024);
  client.send("GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
  for (int i = 0; i < 100 && handler_.all == 0; ++i) {
    client.take(1000);
    std::this_thread::sleep_for(milliseconds(50));
  }
  EXPECT_EQ(handler_.last, 499);
}

TEST_F(HttpServerTest, SlowReadersMakeRoom) {
  HttpServerOptions options;
  options.connections = 4;
  start(options);
  std::vector<std::unique_ptr<Client>> slow;
  for (int i = 0; i < 4; ++i) {
    slow.push_back(std::make_unique<Client>(port_, 1024));
    slow.back()->send("GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
  }
  EXPECT_NE(ask(kGet).find("small"), std::string::npos);
}

TEST_F(HttpServerTest, ASlowReaderHoldsNoThread) {
  HttpServerOptions options;
  options.threads = 1;
  start(options);
  Client stream(port_, 1024);
  stream.send("GET /longer HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(soon([&] { return handler_.begun == 1; }));
  EXPECT_NE(ask(kGet).find("small"), std::string::npos);
  EXPECT_EQ(handler_.ended, 1);
}

TEST_F(HttpServerTest, QuickAnswersWaitForNoThread) {
  HttpServerOptions options;
  options.threads = 1;
  start(options);
  const std::string quick = "GET /quick HTTP/1.1\r\nHost: x\r\n\r\n";
  Client busy(port_), waits(port_);
  busy.send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(soon([&] { return handler_.begun == 1; }));
  waits.send(kGet);
  EXPECT_NE(ask(quick).find("quick"), std::string::npos);
  std::string row;
  for (int i = 0; i < 2000; ++i) row += quick;
  EXPECT_EQ(count(ask(row), "HTTP/1.1 200 OK"), 2000);
  EXPECT_EQ(handler_.ended, 0);
  busy.close();
  EXPECT_NE(waits.receive("small").find("small"), std::string::npos);
}

TEST_F(HttpServerTest, TheOldestIdleConnectionMakesRoom) {
  HttpServerOptions options;
  options.connections = 4;
  start(options);
  std::vector<std::unique_ptr<Client>> idle;
  for (int i = 0; i < 10; ++i) idle.push_back(std::make_unique<Client>(port_));
  EXPECT_NE(ask(kGet).find("small"), std::string::npos);
  EXPECT_EQ(idle.front()->receive(), "");
}

TEST_F(HttpServerTest, StoppingTakesABoundedTime) {
  HttpServerOptions options;
  options.farewell = milliseconds(300);
  start(options);
  handler_.endless = true;
  Client idle(port_), slow(port_), stream(port_, 1024), wait(port_);
  slow.send("GET / HT");
  stream.send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
  wait.send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
  std::this_thread::sleep_for(milliseconds(100));
  const auto since = Clock::now();
  stop();
  EXPECT_LT(Clock::now() - since, std::chrono::seconds(5));
  EXPECT_EQ(handler_.ended, 2);
  EXPECT_EQ(idle.receive(), "");
}

TEST_F(HttpServerTest, APortIsTakenOnce) {
  start();
  HttpServer other(handler_, {});
  EXPECT_THROW(other.bind("127.0.0.1", port_), Error);
  EXPECT_THROW(other.bind("localhost", port_), Error) << "also where it is ::1 first";
}

}  // namespace
}  // namespace lamplighter
