#include "base/line_stream.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "lamplighter/error.h"

namespace lamplighter {
namespace {

constexpr std::size_t kReadBytes = std::size_t{1} << 16;  // bytes per read, and enough for one call of take

}  // namespace

LineStream::LineStream(std::size_t most) : input_(::dup(STDIN_FILENO)), most_(most) {}

std::string LineStream::take() {
  while (!ended_ && waiting_.find('\n') == std::string::npos) read_more(true);
  while (waiting_.size() < kReadBytes && read_more(false)) {
  }
  if (ended_) return std::exchange(waiting_, {});
  const std::size_t end = waiting_.rfind('\n') + 1;
  std::string lines = waiting_.substr(0, end);
  waiting_.erase(0, end);
  return lines;
}

std::string LineStream::take_rest() {
  while (!ended_) read_more(true);
  return std::exchange(waiting_, {});
}

bool LineStream::read_more(bool wait) {
  if (ended_) return false;
  struct pollfd ready {};
  ready.fd = input_.get();
  ready.events = POLLIN;
  if (!wait && ::poll(&ready, 1, 0) <= 0) return false;
  std::array<char, kReadBytes> piece{};
  const ssize_t got = ::read(input_.get(), piece.data(), piece.size());
  if (got < 0 && errno == EINTR) return true;
  if (got < 0) throw Error(ExitCode::input, "cannot read standard input: " + system_reason());
  ended_ = got == 0;
  waiting_.append(piece.data(), static_cast<std::size_t>(got));
  if (waiting_.size() > most_) {
    throw Error(ExitCode::input, "cannot read standard input: it has more bytes, expected at most " +
                                     std::to_string(most_) + " at once");
  }
  return !ended_;
}

}  // namespace lamplighter
