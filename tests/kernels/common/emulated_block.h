#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

// The threads of a CUDA block, or of the blocks of a cluster, as fibres of one CPU thread: emulated_device.h
// says how to use it.
namespace lamplighter::emulated {

struct Size3 {
  unsigned x = 1, y = 1, z = 1;
};

// Where a thread waits.
struct Site {
  const char* file;
  int line;

  bool operator==(const Site& other) const {
    return line == other.line && std::strcmp(file, other.file) == 0;
  }
  std::string text() const {
    return std::string(std::strrchr(file, '/') == nullptr ? file : std::strrchr(file, '/') + 1) + ":" +
           std::to_string(line);
  }
};

// 16 bytes on their way from global to shared memory.
struct Copy {
  void* to;
  const void* from;  // null: zeros
};

// Saves the registers that a callee keeps and its stack to *save, goes on where `load` was saved.
__attribute__((naked, noinline)) inline void switch_stack(void** /*save*/, void* /*load*/) {
  asm volatile(
      "pushq %rbp\n pushq %rbx\n pushq %r12\n pushq %r13\n pushq %r14\n pushq %r15\n"
      "movq %rsp, (%rdi)\n movq %rsi, %rsp\n"
      "popq %r15\n popq %r14\n popq %r13\n popq %r12\n popq %rbx\n popq %rbp\n ret\n");
}

enum class State { kReady, kAtBarrier, kAtCluster, kInWarp, kDone };

struct Fibre {
  void* stack = nullptr;
  State state = State::kReady;
  Site site{"", 0};
  bool announced = false;  // to its cluster
  unsigned mask = 0;       // of lanes that take part in a warp's operation
  void* data = nullptr;    // of this lane for it
  std::vector<Copy> open;
  std::vector<std::vector<Copy>> groups;
};

constexpr int kLanes = 32;
constexpr size_t kStackBytes = size_t{64} << 10;
constexpr size_t kGuardBytes = 1024;
constexpr unsigned char kPoison = 0xFF;  // bytes of a NaN in every floating-point format

class Block {
 public:
  // Runs `body` once in each thread of a cluster's blocks. `shuffle`: the order in which threads get their
  // turn; 0 is rising, others are random. Throws std::runtime_error when threads diverge or leave the shared
  // memory.
  void run(Size3 size, size_t shared_bytes, unsigned shuffle, const std::function<void()>& body,
           int blocks = 1) {
    block_threads_ = static_cast<int>(size.x * size.y * size.z);
    threads_ = blocks * block_threads_;
    body_ = &body;
    order_.seed(shuffle);
    shuffle_ = shuffle != 0;
    shared_bytes_ = shared_bytes;
    shared_.assign(static_cast<size_t>(blocks), {});
    for (std::vector<unsigned char>& own : shared_)
      own.assign(shared_bytes + 2 * kGuardBytes + kAlign, kPoison);
    error_.clear();
    fibres_.assign(static_cast<size_t>(threads_), Fibre{});
    while (stacks_.size() < fibres_.size()) stacks_.emplace_back(new char[kStackBytes]);
    ready_.clear();
    for (int t = 0; t < threads_; ++t) start(t);
    arrange();
    active_ = this;
    while (error_.empty() && advance()) {
    }
    active_ = nullptr;
    for (int block = 0; block < blocks && error_.empty(); ++block) check_guards(block);
    if (error_.empty()) return;
    stacks_.clear();  // unfinished fibres lie on them
    throw std::runtime_error(error_);
  }

  static Block& active() { return *active_; }
  int thread() const { return thread_ % block_threads_; }  // of its block
  int rank() const { return thread_ / block_threads_; }    // of the block in its cluster
  Fibre& fibre() { return fibres_[static_cast<size_t>(thread_)]; }

  void barrier(Site site) { wait(State::kAtBarrier, site); }
  // `announced`: whether the first half of the barrier has to be behind this thread.
  void cluster_barrier(Site site, bool announced) {
    if (fibre().announced != announced) fail("mixes a cluster's barrier with the halves of another one");
    fibre().announced = false;
    wait(State::kAtCluster, site);
  }
  void announce() {
    if (fibre().announced) fail("announces itself to the cluster twice");
    fibre().announced = true;
  }

  // The lanes of `mask` meet; the last one calls complete(data of each lane, null outside the mask).
  void meet(unsigned mask, Site site, void* data, const std::function<void(void* const*)>& complete) {
    Fibre& own = fibre();
    const int first = thread_ / kLanes * kLanes;
    own.mask = mask;
    own.data = data;
    own.site = site;
    own.state = State::kInWarp;
    if (((mask >> (thread_ - first)) & 1U) == 0)
      fail("calls an operation of a warp without being in its mask");
    void* lanes[kLanes] = {};
    for (int i = 0; i < kLanes; ++i) {
      if (((mask >> i) & 1U) == 0) continue;
      if (first + i >= threads_) fail("waits for a lane behind the block's end");
      const Fibre& other = fibres_[static_cast<size_t>(first + i)];
      if (other.state != State::kInWarp || other.mask != mask || !(other.site == site)) return leave();
      lanes[i] = other.data;
    }
    complete(lanes);
    for (int i = 0; i < kLanes; ++i) {
      if (lanes[i] == nullptr) continue;
      fibres_[static_cast<size_t>(first + i)].state = State::kReady;
      if (first + i != thread_) ready_.push_back(first + i);
    }
  }

  char* shared() { return shared_of(rank()); }

  // What lies in the shared memory of block `to` where `own` lies in this one's. The other one has not ended.
  void* in_block(const void* own, int to) {
    const auto offset = static_cast<const char*>(own) - shared();
    if (offset < 0 || static_cast<size_t>(offset) >= shared_bytes_) fail("maps what is not shared memory");
    if (to < 0 || to >= threads_ / block_threads_) fail("asks for a block outside the cluster");
    if (ended(to)) fail("reaches into a block that has ended");
    return shared_of(to) + offset;
  }

  // Fails unless [at, at + bytes) lies in the shared memory, at a multiple of `bytes`.
  void check_shared(const void* at, size_t bytes) {
    const auto offset = static_cast<const char*>(at) - shared();
    if (offset < 0 || static_cast<size_t>(offset) + bytes > shared_bytes_) fail("leaves the shared memory");
    if (static_cast<size_t>(offset) % bytes != 0) fail("uses an address that is not aligned");
  }

  void fail(const std::string& what) {
    error_ = "thread " + std::to_string(thread_) + " " + what;
    leave();
  }

 private:
  static constexpr size_t kAlign = 128;

  char* shared_of(int block) {
    const auto address =
        reinterpret_cast<uintptr_t>(shared_[static_cast<size_t>(block)].data()) + kGuardBytes;
    return reinterpret_cast<char*>((address + kAlign - 1) / kAlign * kAlign);
  }

  bool ended(int block) const {
    const auto first = fibres_.begin() + block * block_threads_;
    return std::all_of(first, first + block_threads_,
                       [](const Fibre& fibre) { return fibre.state == State::kDone; });
  }

  static void enter() {
    Block& block = *active_;
    (*block.body_)();
    block.fibre().state = State::kDone;
    block.leave();
  }

  void start(int thread) {
    // As switch_stack leaves a stack: six registers, then the address to return to.
    auto top =
        reinterpret_cast<uintptr_t>(stacks_[static_cast<size_t>(thread)].get() + kStackBytes) / 16 * 16;
    auto* stack = reinterpret_cast<void**>(top) - 8;
    for (int i = 0; i < 6; ++i) stack[i] = nullptr;
    stack[6] = reinterpret_cast<void*>(&enter);
    fibres_[static_cast<size_t>(thread)].stack = stack;
    ready_.push_back(thread);
  }

  // The last one is next. A warp that can go on does so at once, up to the next barrier of the block.
  void arrange() {
    if (shuffle_) {
      std::shuffle(ready_.begin(), ready_.end(), order_);
    } else {
      std::reverse(ready_.begin(), ready_.end());
    }
  }

  void leave() { switch_stack(&fibre().stack, scheduler_); }

  void wait(State state, Site site) {
    fibre().state = state;
    fibre().site = site;
    leave();
  }

  // Gives every ready thread a turn, then opens the barriers. False when all are done.
  bool advance() {
    while (!ready_.empty() && error_.empty()) {
      thread_ = ready_.back();
      ready_.pop_back();
      switch_stack(&scheduler_, fibre().stack);
    }
    if (!error_.empty()) return false;
    // The threads of a block have to wait at one place; so do all threads at a barrier of the cluster.
    // One block goes on at a time: each runs ahead of the others as far as it can.
    std::vector<int> waiting;  // first threads of blocks
    for (int begin = 0; begin < threads_; begin += block_threads_) {
      if (differ(begin, begin + block_threads_)) return false;
      if (fibres_[static_cast<size_t>(begin)].state == State::kAtBarrier) waiting.push_back(begin);
    }
    if (waiting.empty() && (differ(0, threads_) || fibres_[0].state == State::kDone)) return false;
    const int begin = waiting.empty() ? 0 : waiting[shuffle_ ? order_() % waiting.size() : 0];
    const int end = waiting.empty() ? threads_ : begin + block_threads_;
    for (int t = begin; t < end; ++t) ready_.push_back(t);
    arrange();
    return true;
  }

  // Whether threads of [begin, end) wait at different places, which is an error.
  bool differ(int begin, int end) {
    const Fibre& first = fibres_[static_cast<size_t>(begin)];
    for (int t = begin; t < end; ++t) {
      const Fibre& other = fibres_[static_cast<size_t>(t)];
      const bool same =
          other.state == first.state && (other.state == State::kDone || other.site == first.site);
      if (same && other.state != State::kInWarp) continue;
      error_ = "thread " + std::to_string(begin) + " " + place(first) + ", thread " + std::to_string(t) +
               " " + place(other);
      return true;
    }
    return false;
  }

  static std::string place(const Fibre& fibre) {
    if (fibre.state == State::kDone) return "has ended";
    const bool in_warp = fibre.state == State::kInWarp, in_cluster = fibre.state == State::kAtCluster;
    return std::string("waits ") +
           (in_warp      ? "for its warp"
            : in_cluster ? "at the cluster's barrier"
                         : "at a barrier") +
           " in " + fibre.site.text();
  }

  void check_guards(int block) {
    const char* begin = shared_of(block);
    for (const char* p = begin - kGuardBytes; p < begin + shared_bytes_ + kGuardBytes - kAlign; ++p) {
      if (p == begin) p += shared_bytes_;
      if (static_cast<unsigned char>(*p) != kPoison) error_ = "a thread wrote outside the shared memory";
    }
  }

  static inline Block* active_ = nullptr;
  int block_threads_ = 0;
  int threads_ = 0;
  int thread_ = 0;
  bool shuffle_ = false;
  void* scheduler_ = nullptr;
  const std::function<void()>* body_ = nullptr;
  std::mt19937 order_;
  std::string error_;
  size_t shared_bytes_ = 0;
  std::vector<std::vector<unsigned char>> shared_;  // of each block
  std::vector<Fibre> fibres_;
  std::vector<int> ready_;
  std::vector<std::unique_ptr<char[]>> stacks_;
};

}  // namespace lamplighter::emulated
