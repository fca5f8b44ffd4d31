#include "base/line_writer.h"

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <climits>
#include <utility>

#include "base/descriptor.h"

namespace lamplighter {
namespace {

constexpr auto kFarewell = std::chrono::seconds(1);
constexpr int kTurn_ms = 50;

// Whether a pipe takes PIPE_BUF bytes without delay, or a file any.
bool is_writable(int descriptor) {
  pollfd wanted{descriptor, POLLOUT, 0};
  return ::poll(&wanted, 1, kTurn_ms) > 0;
}

// A pipe whose reader has gone would end the process.
void block_broken_pipes() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

}  // namespace

LineWriter::LineWriter(int descriptor) : descriptor_(descriptor), thread_([this] { run(); }) {}

LineWriter::~LineWriter() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    end_ = std::chrono::steady_clock::now() + kFarewell;
  }
  changed_.notify_all();
  thread_.join();
}

void LineWriter::add(std::string line) {
  {
    const std::lock_guard lock(mutex_);
    if (lines_.size() + 1 >= kMostLines) {
      ++dropped_;
      return;
    }
    report_dropped();
    lines_.push_back(std::move(line) + "\n");
  }
  changed_.notify_all();
}

void LineWriter::report_dropped() {
  if (dropped_ == 0) return;
  lines_.push_back(std::to_string(std::exchange(dropped_, 0)) + " lines were dropped: nobody read them\n");
}

void LineWriter::run() {
  block_broken_pipes();
  std::unique_lock lock(mutex_);
  while (true) {
    if (lines_.empty()) report_dropped();
    changed_.wait(lock, [this] { return ending_ || !lines_.empty(); });
    if (lines_.empty()) return;
    const std::string line = std::move(lines_.front());
    lines_.pop_front();
    lock.unlock();
    const bool is_written = write(line);
    lock.lock();
    if (!is_written) return;
  }
}

bool LineWriter::is_over() {
  const std::lock_guard lock(mutex_);
  return ending_ && std::chrono::steady_clock::now() >= end_;
}

// False where the time to write is over.
bool LineWriter::write(std::string_view bytes) {
  while (!bytes.empty()) {
    if (!is_writable(descriptor_)) {
      if (is_over()) return false;
      continue;
    }
    const std::string_view piece = bytes.substr(0, PIPE_BUF);
    if (!write_all(descriptor_, piece)) return true;  // nobody can read it any more
    bytes.remove_prefix(piece.size());
  }
  return true;
}

}  // namespace lamplighter
