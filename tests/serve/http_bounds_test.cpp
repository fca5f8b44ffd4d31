#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/serve/http_server.h"

namespace lamplighter {
namespace {

using HttpBoundsTest = HttpServerTest;

TEST_F(HttpBoundsTest, WhoReadsNothingIsLetGo) {
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

TEST_F(HttpBoundsTest, AnswersThatNobodyTakesAreBounded) {
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

TEST_F(HttpBoundsTest, RequestsThatAreReadAreBounded) {
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

TEST_F(HttpBoundsTest, BodiesInWorkAreBoundedAndStopNoOthers) {
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

TEST_F(HttpBoundsTest, WhoTakesLittleIsLetGo) {
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

TEST_F(HttpBoundsTest, SlowReadersMakeRoom) {
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

TEST_F(HttpBoundsTest, RoomIsMadeOnceForAConnection) {
  HttpServerOptions options;
  options.connections = 4;
  start(options);
  std::vector<std::unique_ptr<Client>> waiting;
  for (int i = 0; i < 3; ++i) {
    waiting.push_back(std::make_unique<Client>(port_));
    waiting.back()->send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
  }
  EXPECT_TRUE(soon([&] { return handler_.begun == 3; }));
  Client idle(port_);
  EXPECT_NE(ask(kGet).find("small"), std::string::npos) << "not for nobody, at the new one's cost";
  EXPECT_EQ(idle.receive(), "");
}

TEST_F(HttpBoundsTest, ASlowReaderHoldsNoThread) {
  HttpServerOptions options;
  options.threads = 1;
  start(options);
  Client stream(port_, 1024);
  stream.send("GET /longer HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(soon([&] { return handler_.begun == 1; }));
  EXPECT_NE(ask(kGet).find("small"), std::string::npos);
  EXPECT_EQ(handler_.ended, 1);
}

TEST_F(HttpBoundsTest, TheOldestIdleConnectionMakesRoom) {
  HttpServerOptions options;
  options.connections = 4;
  start(options);
  std::vector<std::unique_ptr<Client>> idle;
  for (int i = 0; i < 10; ++i) idle.push_back(std::make_unique<Client>(port_));
  EXPECT_NE(ask(kGet).find("small"), std::string::npos);
  EXPECT_EQ(idle.front()->receive(), "");
}

}  // namespace
}  // namespace lamplighter
