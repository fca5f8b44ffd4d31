#include <gtest/gtest.h>

#include <string>

#include "serve/http/inflate.h"
#include "serve/http/origin.h"
#include "serve/http/reader.h"
#include "serve/http/response.h"
#include "serve/http_error.h"

namespace lamplighter {
namespace {

using State = RequestReader::State;

constexpr const char* kPost = "POST /a%20b?c=d%21+e HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabcGET";

State read_all(RequestReader& reader, const std::string& text) {
  if (reader.read(text) == State::body) reader.read_body();
  return reader.state();
}

int status_of(const std::string& text, const HttpLimits& limits = {}) {
  RequestReader reader(limits);
  try {
    read_all(reader, text);
    return reader.state() == State::complete ? 200 : 100;
  } catch (const HttpError& error) {
    return error.status();
  }
}

TEST(HttpReaderTest, ReadsARequestHoweverItIsCut) {
  const std::string text = kPost;
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    RequestReader reader({});
    read_all(reader, text.substr(0, cut));
    if (reader.state() != State::complete) read_all(reader, text.substr(cut));
    ASSERT_EQ(reader.state(), State::complete) << cut;
    const HttpRequest request = reader.take();
    EXPECT_EQ(request.method, "POST");
    EXPECT_EQ(request.path, "/a b");
    EXPECT_EQ(request.parameter("c"), "d! e");
    EXPECT_EQ(request.parameter("d"), std::nullopt);
    EXPECT_EQ(*request.header("host"), "x");
    EXPECT_EQ(request.body, "abc");
    EXPECT_TRUE(request.keeps_connection());
    EXPECT_EQ(reader.state(), State::waiting);
  }
}

TEST(HttpReaderTest, WhatFollowsIsTheNextRequest) {
  RequestReader reader({});
  const std::string get = "GET / HTTP/1.1\r\nhost: x\r\n\r\n";
  read_all(reader, kPost + (" / HTTP/1.0\r\n\r\n" + get));
  EXPECT_EQ(reader.take().path, "/a b");
  read_all(reader, "");
  const HttpRequest second = reader.take();
  EXPECT_EQ(second.minor_version, 0);
  EXPECT_FALSE(second.keeps_connection());
  EXPECT_EQ(read_all(reader, ""), State::complete);
  EXPECT_EQ(reader.take().method, "GET");
  EXPECT_LT(reader.held(), 64U) << "no room is kept";
}

TEST(HttpReaderTest, ReadsChunks) {
  const std::string text =
      "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
      "Chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\nT: "
      "v\r\n\r\nGET";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    RequestReader reader({});
    read_all(reader, text.substr(0, cut));
    if (reader.state() != State::complete) read_all(reader, text.substr(cut));
    ASSERT_EQ(reader.state(), State::complete) << cut;
    EXPECT_EQ(reader.take().body, "abc0123456789");
  }
}

TEST(HttpReaderTest, RefusesWhatCouldBeReadInTwoWays) {
  const std::string head = "POST / HTTP/1.1\r\nHost: x\r\n";
  for (const char* lines :
       {"Content-Length: 1\r\nTransfer-Encoding: chunked", "Content-Length: 1\r\nContent-Length: 1",
        "Content-Length: 1,1", "Content-Length: +1", "Content-Length: 0x1", "Content-Length: 1a",
        "Content-Length : 1", "Content-Length", ": 1", " Content-Length: 1", "X: a\r\n b", "X: a\rb: c",
        "Host: y"})
    EXPECT_EQ(status_of(head + lines + "\r\n\r\n"), 400) << lines;
  EXPECT_EQ(status_of(head + "Transfer-Encoding: gzip, chunked\r\n\r\n"), 501);
  EXPECT_EQ(status_of(head + "Expect: more\r\n\r\n"), 417);
  EXPECT_EQ(status_of("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\n\r\n"), 400) << "no host";
  for (const char* chunk : {"x\r\n", "-1\r\n", "0x3\r\nabc\r\n", "3\r\nabcd\r\n", "\r\n", " \r\n"})
    EXPECT_EQ(status_of(head + "Transfer-Encoding: chunked\r\n\r\n" + chunk), 400) << chunk;
  for (const char* chunks :
       {"3\nabc\r\n0\r\n\r\n", "3\r\nabc\n0\r\n\r\n", "3;\nabc\r\n0\r\n\r\n", "3;a\rb\r\nabc\r\n0\r\n\r\n",
        "0\r\n\n", "0\r\na: b\n\r\n", "0\r\nGET / HTTP/1.1\r\n\r\n", "0\r\n a: b\r\n\r\n"})
    EXPECT_EQ(status_of(head + "Transfer-Encoding: chunked\r\n\r\n" + chunks), 400) << chunks;
  EXPECT_EQ(status_of(head + "Transfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\na: b\r\n\r\n"), 200);
}

TEST(HttpReaderTest, LimitsHoldBeforeTheEndOfALine) {
  HttpLimits limits;
  limits.line = 100;
  limits.head = 300;
  limits.headers = 5;
  limits.body = 10;
  const std::string head = "POST / HTTP/1.1\r\nHost: x\r\n", many(102, 'a');
  EXPECT_EQ(status_of("GET /" + many, limits), 414);
  EXPECT_EQ(status_of(head + "X: " + many, limits), 431);
  EXPECT_EQ(status_of(head + "a: b\r\na: b\r\na: b\r\na: b\r\na: b\r\n", limits), 431);
  const std::string line = "X: " + std::string(90, 'a') + "\r\n";
  EXPECT_EQ(status_of(head + line + line + line, limits), 431);
  EXPECT_EQ(status_of(head + "Content-Length: 11\r\n\r\n", limits), 413);
  EXPECT_EQ(status_of(head + "Content-Length: 99999999999999999999999\r\n\r\n", limits), 413);
  EXPECT_EQ(status_of(head + "Transfer-Encoding: chunked\r\n\r\nB\r\n", limits), 413);
  EXPECT_EQ(status_of(head + "Transfer-Encoding: chunked\r\n\r\n6\r\nabcdef\r\n5\r\n", limits), 413);
  EXPECT_EQ(status_of(head + "Transfer-Encoding: chunked\r\n\r\n0\r\n" + line + line + line + line, limits),
            431);
  EXPECT_EQ(status_of(head + "Content-Length: 10\r\n\r\n0123456789", limits), 200);
  std::string empty;
  for (int i = 0; i < 9; ++i) empty += "\r\n";
  EXPECT_EQ(status_of(empty), 400);
  EXPECT_EQ(status_of("\r\n" + head + "\r\n"), 200);
}

TEST(HttpReaderTest, ExtensionsOfChunksCountAsHeaders) {
  const std::string head = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  std::string plain, extended;
  for (int i = 0; i < 20'000; ++i) plain += "1\r\na\r\n";
  for (int i = 0; i < 200; ++i) extended += "1;" + std::string(200, 'b') + "\r\na\r\n";
  EXPECT_EQ(status_of(head + plain + "0\r\n\r\n"), 200);
  EXPECT_EQ(status_of(head + extended), 431);
}

TEST(HttpReaderTest, AHostIsANameAndAPort) {
  const auto status = [](const std::string& host) {
    return status_of("GET / HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
  };
  for (const char* host :
       {"", "a", "a-b_c.d:1", "a:", "1.2.3.4:65535", "[::1]", "[::1]:80", "[fe80::1%25eth0]:80"})
    EXPECT_EQ(status(host), 200) << host;
  for (const char* host :
       {"localhost:80@b", "localhost:b", "localhost:80:90", "localhost:100000", "a/b", "a b", "a,b", "a?b",
        "a#b", "a\\b", "[::1]b", "[::1", "[::1%@b]", "[::1]:b", "\xC3\xBC"})
    EXPECT_EQ(status(host), 400) << host;
}

TEST(HttpReaderTest, TheHostOfAWholeAddressCounts) {
  const auto read = [](const std::string& line) {
    RequestReader reader({});
    read_all(reader, "GET " + line + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
    HttpRequest request = reader.take();
    return *request.header("host") + " " + request.path + " " + request.query;
  };
  EXPECT_EQ(read("http://evil.example/a?b"), "evil.example /a b");
  EXPECT_EQ(read("HTTPS://evil.example:1?/a"), "evil.example:1 / /a");
  EXPECT_EQ(read("http://evil.example"), "evil.example / ");
  EXPECT_EQ(read("/a"), "localhost /a ");
  for (const char* line : {"http://", "http:///a", "http://a@b/", "http://[/a", "ftp://a/b"})
    EXPECT_EQ(status_of(std::string("GET ") + line + " HTTP/1.1\r\nHost: localhost\r\n\r\n"), 400) << line;
}

TEST(HttpReaderTest, WhatDecidesIsSaidOnce) {
  for (const std::string name :
       {"Host", "Origin", "Authorization", "Content-Type", "Content-Encoding", "Content-Length", "Expect"}) {
    const std::string one = name + ": 100-continue\r\n";
    const std::string host = name == "Host" ? "" : "Host: x\r\n";
    EXPECT_EQ(status_of("GET / HTTP/1.1\r\n" + host + one + one + "\r\n"), 400) << name;
  }
  RequestReader reader({});
  read_all(reader, "GET / HTTP/1.1\r\nHost: x\r\nConnection: keep-alive\r\nConnection: close\r\n\r\n");
  EXPECT_FALSE(reader.take().keeps_connection());
}

TEST(HttpReaderTest, PercentSignsAreResolvedOrRefused) {
  EXPECT_EQ(percent_decode("%41%2fb+"), "A/b+");
  EXPECT_EQ(percent_decode("a+%20", true), "a  ");
  for (const char* text : {"%", "%4", "%4g", "%+1", "a%%"})
    EXPECT_EQ(percent_decode(text), std::nullopt) << text;
}

HttpRequest from(const std::string& host, const std::string& origin = "") {
  HttpRequest request;
  request.headers = {{"host", host}};
  if (!origin.empty()) request.headers.emplace_back("origin", origin);
  return request;
}

bool is_served(const RequestOrigin& rules, const HttpRequest& request) {
  try {
    rules.check(request);
    return true;
  } catch (const HttpError& error) {
    EXPECT_EQ(error.status(), 403);
    return false;
  }
}

TEST(HttpOriginTest, OnlyNamesOfThisMachineAreServed) {
  const RequestOrigin rules({"Lamp.example:80", "0.0.0.0"}, "");
  for (const char* host : {"localhost", "LOCALHOST:1", "a.localhost", "127.0.0.1:8080", "[::1]:80",
                           "[fe80::1%25eth0]", "10.1.2.3", "lamp.example", "lamp.example.:8080"})
    EXPECT_TRUE(is_served(rules, from(host))) << host;
  for (const char* host :
       {"", "evil.example", "localhost.evil.example", "evillocalhost", "1.2.3.4.evil.example", "127.1",
        "2130706433", "lamp.example.evil.example", "[::1", "[]"})
    EXPECT_FALSE(is_served(rules, from(host))) << host;
  EXPECT_TRUE(is_served(rules, HttpRequest())) << "HTTP/1.0 needs no name";
  EXPECT_TRUE(is_served(RequestOrigin({"*"}, ""), from("evil.example")));
}

TEST(HttpOriginTest, OnlyThePagesOfThisServerMayAsk) {
  const RequestOrigin rules({}, ""), open({}, "*"), one({}, "https://page.example");
  EXPECT_TRUE(is_served(rules, from("localhost:8080", "http://localhost:8080")));
  EXPECT_TRUE(is_served(rules, from("localhost", "https://localhost")));
  for (const char* origin : {"null", "http://localhost", "http://localhost:80800", "https://page.example"})
    EXPECT_FALSE(is_served(rules, from("localhost:8080", origin))) << origin;
  EXPECT_TRUE(is_served(open, from("localhost", "null")));
  EXPECT_TRUE(is_served(one, from("localhost", "https://page.example")));
  EXPECT_FALSE(is_served(one, from("localhost", "https://page.example.evil")));
}

TEST(HttpResponseTest, HeadersStayOnTheirLine) {
  HttpResponse response;
  response.set_header("X", "a\r\nSet-Cookie: b\xC3\xBC");
  response.set_body("body", "text/plain");
  const std::string head = encode_head(response, true, false);
  EXPECT_NE(head.find("X: a??Set-Cookie: b??\r\n"), std::string::npos) << head;
  EXPECT_NE(head.find("Content-Length: 4\r\n"), std::string::npos);
  EXPECT_EQ(head.find("\r\n\r\n"), head.size() - 4);
  EXPECT_EQ(encode_chunk("0123456789abcdef"), "10\r\n0123456789abcdef\r\n");
}

TEST(HttpInflateTest, PackedBodiesAreDamagedOrSmallOrRefused) {
  // printf abc | gzip -n9
  const std::string packed("\x1f\x8b\x08\0\0\0\0\0\x02\x03\x4b\x4c\x4a\x06\0\xc2\x41\x24\x35\x03\0\0\0", 23);
  EXPECT_EQ(inflate_body(packed, 3), "abc");
  EXPECT_EQ(inflate_body(packed + packed, 6), "abcabc");
  const auto status = [&](const std::string& bytes, std::size_t most) {
    try {
      inflate_body(bytes, most);
      return 200;
    } catch (const HttpError& error) {
      return error.status();
    }
  };
  EXPECT_EQ(status(packed, 2), 413);
  EXPECT_EQ(status(packed.substr(0, 12), 100), 400);
  EXPECT_EQ(status("no gzip", 100), 400);
  EXPECT_EQ(status(packed + packed, 5), 413);
  EXPECT_EQ(status(packed + "more", 100), 400);
  EXPECT_EQ(status(packed + packed.substr(0, 15), 100), 400);
}

}  // namespace
}  // namespace lamplighter
