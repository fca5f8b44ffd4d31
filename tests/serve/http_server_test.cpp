#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/serve/http_server.h"

namespace lamplighter {
namespace {

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
  const auto refusal = [&](const std::string& host) {
    try {
      other.bind(host, port_);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string port = std::to_string(port_);
  EXPECT_EQ(refusal("127.0.0.1").rfind("--port: cannot listen on 127.0.0.1:" + port + ":", 0), 0U);
  if (const std::string all = refusal("::"); !all.empty()) {  // a machine may have no such addresses
    EXPECT_EQ(all.rfind("--port: cannot listen on [::]:" + port + ":", 0), 0U) << all;
  }
}

}  // namespace
}  // namespace lamplighter
