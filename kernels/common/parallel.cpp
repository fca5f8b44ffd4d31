#include "kernels/common/parallel.h"

#include <ATen/Parallel.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <system_error>
#include <thread>
#include <vector>

namespace lamplighter {
namespace {

using Body = c10::function_ref<void(int64_t, int64_t)>;

// How long a thread looks for work, or for the end of a part, before it sleeps. Waking costs some 50 us, and
// the kernels of an image follow each other within less than these times.
constexpr auto kIdleSpin = std::chrono::microseconds(1000);
constexpr auto kJoinSpin = std::chrono::microseconds(200);

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// What a worker does. offered: its part may be taken by the worker or by the calling thread. awaited: taken
// by the worker, and the calling thread sleeps until it is done.
enum State : uint32_t { idle, asleep, offered, taken, awaited, stopped };
using Word = std::atomic<uint32_t>;

void sleep_while(Word& word, State state) {
  ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, state, nullptr, nullptr, 0);
}

void wake(Word& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

// Looks at a word until it has left a state, or for a time. Returns what it holds.
uint32_t spin_while(const Word& word, State state, std::chrono::microseconds most) {
  const auto end = std::chrono::steady_clock::now() + most;
  do {
    for (int i = 0; i < 32; ++i) {
      const uint32_t now = word.load(std::memory_order_acquire);
      if (now != state) return now;
      relax();
    }
  } while (std::chrono::steady_clock::now() < end);
  return state;
}

thread_local bool is_within_part = false;

struct Part {
  const Body* body = nullptr;
  int64_t begin = 0, end = 0;
  std::exception_ptr error;

  void run() {
    is_within_part = true;
    try {
      (*body)(begin, end);
    } catch (...) {
      error = std::current_exception();
    }
    is_within_part = false;
  }
};

// A thread that runs one part at a time.
class Worker {
 public:
  Worker() : thread_([this] { work(); }) {}
  ~Worker() {
    if (word_.exchange(stopped) == asleep) wake(word_);
    thread_.join();
  }

  void offer(const Body& body, int64_t begin, int64_t end) {
    part_ = {&body, begin, end, nullptr};
    if (word_.exchange(offered) == asleep) wake(word_);
  }

  // Runs the part unless the worker has begun it, else waits for it. Returns what it threw.
  std::exception_ptr join() {
    uint32_t expected = offered;
    if (word_.compare_exchange_strong(expected, idle)) {
      part_.run();
      return part_.error;
    }
    spin_while(word_, taken, kJoinSpin);
    expected = taken;
    if (word_.compare_exchange_strong(expected, awaited)) {
      while (word_.load() == awaited) sleep_while(word_, awaited);
    }
    return part_.error;
  }

 private:
  void work() {
    while (true) {
      uint32_t now = spin_while(word_, idle, kIdleSpin);
      if (now == stopped) return;
      if (now == idle && word_.compare_exchange_strong(now, asleep)) {
        while (word_.load() == asleep) sleep_while(word_, asleep);
      }
      now = offered;
      if (!word_.compare_exchange_strong(now, taken)) continue;
      part_.run();
      if (word_.exchange(idle) == awaited) wake(word_);
    }
  }

  Word word_{idle};
  Part part_;
  std::thread thread_;
};

// The threads of a calling thread.
class Team {
 public:
  // Runs `parts` parts of `size`, the last of which may be shorter.
  void run(int64_t begin, int64_t end, int64_t size, int64_t parts, const Body& body) {
    grow(parts - 1);
    const auto helpers = std::min<int64_t>(parts - 1, static_cast<int64_t>(workers_.size()));
    const auto start = [&](int64_t part) { return std::min(end, begin + part * size); };
    for (int64_t i = 0; i < helpers; ++i) workers_[i]->offer(body, start(i + 1), start(i + 2));
    Part own{&body, begin, start(1), nullptr};
    own.run();
    std::exception_ptr error = own.error;
    for (int64_t i = 0; i < helpers; ++i) {
      const std::exception_ptr thrown = workers_[i]->join();
      if (!error) error = thrown;
    }
    if (error) std::rethrow_exception(error);
    if (helpers + 1 < parts) body(start(helpers + 1), end);
  }

 private:
  void grow(int64_t wanted) {
    try {
      while (static_cast<int64_t>(workers_.size()) < wanted) workers_.push_back(std::make_unique<Worker>());
    } catch (const std::system_error&) {  // no more threads: fewer do the work
    }
  }

  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace

void parallel_for(int64_t begin, int64_t end, int64_t grain, Body body) {
  if (begin >= end) return;
  const auto ceil_of = [](int64_t value, int64_t by) { return (value + by - 1) / by; };
  const int64_t size = end - begin;
  const bool is_nested = is_within_part || at::in_parallel_region();
  const int64_t threads =
      is_nested ? 1 : std::min<int64_t>(at::get_num_threads(), ceil_of(size, std::max<int64_t>(1, grain)));
  if (threads <= 1) return body(begin, end);
  thread_local Team team;
  const int64_t part = ceil_of(size, threads);
  team.run(begin, end, part, ceil_of(size, part), body);
}

}  // namespace lamplighter
