#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "base/stopwatch.h"
#include "serve/http/response.h"

namespace lamplighter {

// One request and its answer, between the thread that holds the connections and the one that answers.
class Exchange {
 public:
  using Bytes = HttpResponse::Bytes;

  // wake: called when there is more to send.
  Exchange(std::function<void()> wake) : wake_(std::move(wake)) {}

  // For the thread that answers. `push` waits some seconds while the client has much to take, so that a slow
  // one holds no thread; false when it has gone.
  bool push(Bytes bytes);
  void finish(bool keeps_connection);

  // For the thread of the connections. `take` adds what is new to `out`; true when the answer is complete.
  bool take(std::deque<Bytes>& out, bool& keeps_connection);
  void sent(std::size_t bytes);  // of them
  void abandon();                // the client takes nothing more
  const std::shared_ptr<std::atomic<bool>> gone = std::make_shared<std::atomic<bool>>(false);

  // For the log. The answering thread sets the status before it finishes.
  Stopwatch watch;
  std::string method, label;
  int status = 0;

 private:
  static constexpr std::size_t kMostUnsent = std::size_t{1} << 18;               // bytes of a stream
  static constexpr std::chrono::milliseconds kPatience{3000}, kImpatience{100};  // the first time, and then

  const std::function<void()> wake_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Bytes> new_;
  std::size_t unsent_ = 0;
  bool finished_ = false, keeps_ = false, abandoned_ = false, is_slow_ = false;
};

}  // namespace lamplighter
