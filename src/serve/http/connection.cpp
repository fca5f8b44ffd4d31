#include "serve/http/connection.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <exception>
#include <utility>

namespace lamplighter {
namespace {

constexpr std::size_t kPiece = 16384;                       // bytes of a read
constexpr int kPieces = 8;                                  // of a connection, before it is another's turn
constexpr std::size_t kMostDrained = std::size_t{1} << 24;  // bytes

bool is_later(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

}  // namespace

void HttpServer::read_from(Connection& connection) {
  std::array<char, kPiece> piece;  // NOLINT: written before it is read
  for (int i = 0; i < kPieces && connection.phase == Connection::Phase::reading; ++i) {
    const ssize_t got = ::recv(connection.socket.get(), piece.data(), piece.size(), 0);
    if (got < 0 && is_later(errno)) return;
    if (got < 0 || (got == 0 && connection.is_waiting())) return close(connection);
    if (got == 0) {
      connection.half_closed = true;
      return refuse(connection, HttpError(400, "bad_request", "the request ends early"));
    }
    if (connection.is_waiting()) {
      connection.watch = {};
      connection.since = Clock::now();
    }
    try {
      connection.reader.read({piece.data(), static_cast<std::size_t>(got)});
    } catch (const HttpError& error) {
      return refuse(connection, error);
    } catch (const std::exception&) {  // no memory
      return close(connection);
    }
    read_requests(connection);
  }
}

// Goes on with the bytes that are there.
void HttpServer::read_requests(Connection& connection) {
  using State = RequestReader::State;
  RequestReader& reader = connection.reader;
  try {
    reader.read("");
    if (reader.state() == State::body && !connection.admitted) {
      handler_.admit(reader.request());
      connection.admitted = true;
      connection.since = Clock::now();
      if (reader.read_body() == State::body && reader.request().header("expect") != nullptr) {
        constexpr std::string_view go_on = "HTTP/1.1 100 Continue\r\n\r\n";
        ::send(connection.socket.get(), go_on.data(), go_on.size(), MSG_NOSIGNAL);
      }
    } else if (reader.state() == State::body) {
      reader.read_body();
    }
    count_unread(connection);
    limit_unread(connection);
    if (connection.phase == Connection::Phase::reading && reader.state() == State::complete)
      dispatch(connection);
  } catch (const HttpError& error) {
    refuse(connection, error);
  } catch (const std::exception&) {  // no memory, or no thread
    close(connection);
  }
}

void HttpServer::count_unread(Connection& connection) {
  unread_ -= connection.unread;
  connection.unread = connection.reader.held();
  unread_ += connection.unread;
}

// Requests that come slowly cost memory: the one that has taken longest has to go. `newest` has just grown.
void HttpServer::limit_unread(Connection& newest) {
  while (unread_ > options_.unread_bytes && newest.phase == Connection::Phase::reading) {
    Connection* slowest = &newest;
    for (const auto& [number, connection] : connections_) {
      if (connection->phase == Connection::Phase::reading && !connection->is_waiting() &&
          connection->since < slowest->since)
        slowest = connection.get();
    }
    refuse(*slowest, HttpError(503, "busy", "too many large requests are being read", 1));
  }
}

// The body of the request in work.
void HttpServer::hold_body(Connection& connection, std::size_t bytes) {
  if (bytes > 0 && held_bodies_ + bytes > options_.body_bytes)
    throw HttpError(503, "busy", "too many large requests are being answered", 1);
  held_bodies_ += bytes;
  held_bodies_ -= connection.body;
  connection.body = bytes;
}

void HttpServer::dispatch(Connection& connection) {
  hold_body(connection, connection.reader.request().body.size());
  const auto request = std::make_shared<HttpRequest>(connection.reader.take());
  const auto exchange = std::make_shared<Exchange>([this, number = connection.number] { wake(number); });
  exchange->watch = connection.watch;
  exchange->method = request->method;
  exchange->label = handler_.label(request->path);
  request->client = connection.client;
  request->gone = exchange->gone;
  *exchange->gone = connection.half_closed;
  connection.exchange = exchange;
  connection.phase = Connection::Phase::answering;
  connection.finished = false;
  count_unread(connection);
  watch(connection);
  // Sent when the number is taken, not here: a row of requests on one connection would nest.
  if (handler_.is_quick(*request)) return work(*exchange, *request);
  workers_.add([this, exchange, request] { work(*exchange, *request); });
}

void HttpServer::refuse(Connection& connection, const HttpError& error) {
  const auto exchange = std::make_shared<Exchange>([] {});
  const HttpRequest& request = connection.reader.request();
  const HttpResponse response = handler_.refuse(error, request.path);
  exchange->watch = connection.watch;
  exchange->method = request.method.empty() ? "?" : request.method;
  exchange->label = handler_.label(request.path);
  exchange->status = response.status;
  exchange->push(std::make_shared<const std::string>(encode_head(response, false, false)));
  if (response.body && request.method != "HEAD") exchange->push(response.body);
  exchange->finish(false);
  RequestReader empty(options_.limits);
  std::swap(connection.reader, empty);  // an assignment would keep the memory of its strings
  count_unread(connection);
  connection.exchange = exchange;
  connection.phase = Connection::Phase::answering;
  take_answer(connection);
}

void HttpServer::take_answer(Connection& connection) {
  if (connection.phase != Connection::Phase::answering) return;
  if (connection.out.empty()) {
    connection.since = Clock::now();
    connection.taken = 0;
  }
  connection.finished = connection.exchange->take(connection.out, connection.keeps);
  unsent_ -= connection.unsent;
  connection.unsent = 0;
  for (const Exchange::Bytes& bytes : connection.out) connection.unsent += bytes->size();
  connection.unsent -= connection.offset;
  unsent_ += connection.unsent;
  send_to(connection);
}

void HttpServer::send_to(Connection& connection) {
  while (!connection.out.empty()) {
    const std::string_view rest = std::string_view(*connection.out.front()).substr(connection.offset);
    const ssize_t sent = ::send(connection.socket.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0 && is_later(errno)) return watch(connection);
    if (sent < 0) return close(connection);
    const auto count = static_cast<std::size_t>(sent);
    connection.taken += count;
    if (connection.taken >= options_.least_taken) {
      connection.since = Clock::now();
      connection.taken = 0;
    }
    connection.offset += count;
    connection.unsent -= count;
    unsent_ -= count;
    connection.exchange->sent(count);
    if (connection.offset < connection.out.front()->size()) continue;
    connection.out.pop_front();
    connection.offset = 0;
  }
  if (connection.finished) return end_answer(connection);
  watch(connection);
}

void HttpServer::end_answer(Connection& connection) {
  const std::shared_ptr<Exchange> done = std::move(connection.exchange);
  ++answered_;
  handler_.answered(done->method, done->label, done->status, done->watch.elapsed() / 1000);
  hold_body(connection, 0);
  count_unread(connection);
  if (!connection.keeps || stopping_) return linger(connection);
  connection.phase = Connection::Phase::reading;
  connection.admitted = false;
  connection.since = Clock::now();
  connection.watch = {};
  watch(connection);
  read_requests(connection);
}

void HttpServer::linger(Connection& connection) {
  if (connection.half_closed) return close(connection);
  ::shutdown(connection.socket.get(), SHUT_WR);
  connection.phase = Connection::Phase::lingering;
  connection.since = Clock::now();
  watch(connection);
}

void HttpServer::drain(Connection& connection) {
  std::array<char, kPiece> piece;  // NOLINT: never read
  for (int i = 0; i < kPieces; ++i) {
    const ssize_t got = ::recv(connection.socket.get(), piece.data(), piece.size(), 0);
    if (got < 0 && is_later(errno)) return;
    if (got > 0) connection.drained += static_cast<std::size_t>(got);
    if (got <= 0 || connection.drained > kMostDrained) return close(connection);
  }
}

// Answers a request, mostly in a thread of its own.
void HttpServer::work(Exchange& exchange, HttpRequest& request) {
  HttpResponse response;
  handler_.answer(request, response);
  exchange.status = response.status;
  const bool chunked = response.stream && request.minor_version > 0;
  const bool keeps = request.keeps_connection() && !response.closes && (!response.stream || chunked);
  const auto push = [&](std::string bytes) {
    return exchange.push(std::make_shared<const std::string>(std::move(bytes)));
  };
  push(encode_head(response, keeps, chunked));
  if (request.method == "HEAD") {
    // no body
  } else if (response.stream) {
    response.stream([&](std::string_view part) {
      return part.empty() || push(chunked ? encode_chunk(part) : std::string(part));
    });
    if (chunked) push(std::string(kLastChunk));
  } else if (response.body && !response.body->empty()) {
    exchange.push(std::move(response.body));
  }
  exchange.finish(keeps);
}

}  // namespace lamplighter
