#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace lamplighter {

struct QueueOptions {
  std::string address;     // HOST:PORT of the process that serves; empty: no queue
  bool serves = false;     // this process does
  int lease_seconds = 60;  // a process that was silent for so long is lost, and others draw its captions
};

// Throws Error(ExitCode::usage) for an address that is none, and a lease that is not positive.
void check_queue(const QueueOptions& options);

// Captions that processes share while they draw, through a store of one of them (LibTorch's TCPStore).
// Captions are numbered from 0 and given out in order. It has no authentication: it belongs on a network that
// is one's own. All calls throw Error(ExitCode::some_failed) when the process that serves is lost.
class WorkQueue {
 public:
  // Connects, for up to a minute; null when `is_needed` says no before. `run` must be equal for all processes
  // of the queue: Error(ExitCode::usage).
  static std::unique_ptr<WorkQueue> join(const QueueOptions& options, std::size_t captions,
                                         const std::string& run, const std::function<bool()>& is_needed);
  // Leaves the queue; the one that serves waits for those that still draw, unless they are lost.
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  // The next caption that no process has had, now this one's. None when all are given out.
  std::optional<std::size_t> next();
  // Tells that a caption's pictures are there.
  void done(std::size_t caption);
  // A caption of a process that is lost, now this one's. Waits while others draw; none when every caption is
  // done or `go_on` says no.
  template <class GoOn>
  std::optional<std::size_t> lost(const GoOn& go_on) {
    while (go_on()) {
      if (is_complete()) return std::nullopt;
      if (const std::optional<std::size_t> caption = take_over()) return caption;
      pause();
    }
    return std::nullopt;
  }

 private:
  struct Members;
  explicit WorkQueue(std::unique_ptr<Members> members);
  bool is_complete();
  std::optional<std::size_t> take_over();
  void pause();
  void leave();

  std::unique_ptr<Members> members_;
};

}  // namespace lamplighter
