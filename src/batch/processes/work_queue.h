#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace lamplighter {

struct QueueOptions {
  std::string address;     // HOST:PORT of the serving process; empty: no queue
  bool serves = false;     // whether this process serves
  int lease_seconds = 60;  // a process that was silent this long is lost, and others take its captions
};

// Throws Error(ExitCode::usage) for an invalid address or a lease below one second.
void check_queue(const QueueOptions& options);

// Shares the captions of a run among processes through LibTorch's TCPStore, which one of them serves.
// Captions are numbered from 0 and handed out in order. Every step is one message, so a process may be killed
// between any two of them. There is no authentication, so use it on trusted networks only. All calls throw
// Error(ExitCode::some_failed) when the serving process is lost.
class WorkQueue {
 public:
  // Connects within a minute. Returns null when `is_needed` becomes false before. `run` must be equal in all
  // processes, otherwise Error(ExitCode::usage).
  static std::unique_ptr<WorkQueue> join(const QueueOptions& options, std::size_t captions,
                                         const std::string& run, const std::function<bool()>& is_needed);
  // Leaves the queue. The serving process waits for processes that still generate, unless they are lost.
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  // Claims the next caption. Returns nothing when all have been claimed.
  std::optional<std::size_t> next();
  // Reports that all images of a caption are finished.
  void done(std::size_t caption);
  // Claims a caption of a lost process. Waits while others generate. Returns nothing when every caption is
  // done or `go_on` returns false.
  template <class GoOn>
  std::optional<std::size_t> lost(const GoOn& go_on) {
    while (go_on()) {
      if (const std::optional<std::size_t> caption = take_over()) return caption;
      if (is_complete()) return std::nullopt;
      pause();
    }
    return std::nullopt;
  }

 private:
  struct Members;
  explicit WorkQueue(std::unique_ptr<Members> members);
  std::optional<std::size_t> take_over();
  bool is_complete() const;  // as the last take_over() found it
  void pause();
  void leave();

  std::unique_ptr<Members> members_;
};

}  // namespace lamplighter
