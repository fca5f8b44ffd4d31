#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "base/descriptor.h"
#include "base/stopwatch.h"
#include "serve/http/exchange.h"
#include "serve/http/reader.h"
#include "serve/http/server.h"

namespace lamplighter {

// A connection of a server, for server.cpp and connection.cpp.
struct HttpServer::Connection {
  // lingering: all is sent, and what the client still sends is dropped. A connection that ends while bytes
  // wait to be read is reset, and the client may lose the answer.
  enum class Phase { reading, answering, lingering, closed };

  Connection(Number given, Descriptor descriptor, std::string address, const HttpLimits& limits)
      : number(given), socket(std::move(descriptor)), client(std::move(address)), reader(limits) {}

  bool is_waiting() const {
    return phase == Phase::reading && reader.state() == RequestReader::State::waiting;
  }

  const Number number;
  Descriptor socket;
  const std::string client;
  RequestReader reader;
  Phase phase = Phase::reading;
  Clock::time_point since = Clock::now();  // of what its time is limited for
  Stopwatch watch;                         // since the request's first byte
  bool admitted = false, half_closed = false;
  std::size_t unread = 0, body = 0;  // bytes that count for the server; `body`: of the request in work
  std::shared_ptr<Exchange> exchange;
  std::deque<Exchange::Bytes> out;
  std::size_t offset = 0, unsent = 0;  // in the first of them; bytes of all
  std::size_t taken = 0;               // bytes of an answer since `since`
  bool finished = false, keeps = false;
  std::size_t drained = 0;
  std::uint32_t watched = 0;
};

}  // namespace lamplighter
