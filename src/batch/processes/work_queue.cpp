#include "batch/processes/work_queue.h"

#include <c10/util/Exception.h>
#include <c10/util/Flags.h>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <charconv>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/message.h"
#include "lamplighter/error.h"

C10_DECLARE_int(caffe2_log_level);

namespace lamplighter {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kConnecting{60'000}, kTrying{2'000}, kAnswering{20'000}, kBetweenBeats{1'000};
constexpr int kNoLog = 4;  // above fatal
constexpr const char *kNext = "next", *kDone = "done", *kWorkers = "workers", *kRun = "run";

[[noreturn]] void lost_server(const std::string& address) {
  throw Error(ExitCode::some_failed,
              "queue " + address +
                  ": the process that serves it is lost; the same command goes on once it "
                  "serves again");
}

std::pair<std::string, std::uint16_t> parse_address(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  unsigned port = 0;
  const char *begin = address.data() + (colon == std::string::npos ? 0 : colon + 1),
             *end = address.data() + address.size();
  const auto [last, error] = std::from_chars(begin, end, port);
  if (colon == std::string::npos || colon == 0 || error != std::errc() || last != end || port < 1 ||
      port > 65535)
    throw Error(ExitCode::usage, "queue: got " + quote(address) + ", expected HOST:PORT");
  return {address.substr(0, colon), static_cast<std::uint16_t>(port)};
}

std::string claim_key(std::size_t caption) {
  return "claim/" + std::to_string(caption);
}
std::string done_key(std::size_t caption) {
  return "done/" + std::to_string(caption);
}
std::string beat_key(const std::string& worker) {
  return "beat/" + worker;
}

std::string text_of(const std::vector<std::uint8_t>& bytes) {
  return {bytes.begin(), bytes.end()};
}

}  // namespace

void check_queue(const QueueOptions& options) {
  parse_address(options.address);
  if (options.lease_seconds < 1) {
    throw Error(ExitCode::usage,
                "lease: got " + std::to_string(options.lease_seconds) + ", expected 1 or more seconds");
  }
}

struct WorkQueue::Members {
  QueueOptions options;
  std::size_t captions = 0;
  std::unique_ptr<c10d::TCPStore> store;
  std::string worker;  // a number of its own, also after a restart
  // Of other processes: how often they gave a sign of life, and when that last changed.
  struct Sign {
    std::int64_t beats = -1;
    Clock::time_point since;
  };
  std::map<std::string, Sign> signs;
  std::vector<bool> known_done;  // captions that need not be asked for again
  std::mutex ending_lock;
  std::condition_variable ending_changed;
  bool ending = false;
  std::thread heart;

  // f() with the store's complaints as Error.
  template <class F>
  auto ask(F f) {
    try {
      return f();
    } catch (const c10::Error&) {
      lost_server(options.address);
    } catch (const std::system_error&) {
      lost_server(options.address);
    }
  }
  bool connect(bool is_last);
  void beat();
  bool is_lost(const std::string& other);
};

// One try; false when nobody answers, an Error where it is the last or where this process cannot serve.
bool WorkQueue::Members::connect(bool is_last) {
  const auto [host, port] = parse_address(options.address);
  c10d::TCPStoreOptions how;
  how.port = port;
  how.isServer = options.serves;
  how.waitWorkers = false;
  how.timeout = kTrying;
  try {
    store = std::make_unique<c10d::TCPStore>(host, how);
    store->setTimeout(kAnswering);
    return true;
  } catch (const std::exception& error) {
    if (!options.serves && !is_last) return false;
    const std::string why = error.what();
    throw Error(ExitCode::some_failed, "queue " + options.address + ": " +
                                           (options.serves ? "cannot be served" : "nobody serves it") + ": " +
                                           why.substr(0, why.find('\n')));
  }
}

void WorkQueue::Members::beat() {
  std::unique_lock lock(ending_lock);
  while (!ending) {
    lock.unlock();
    try {
      store->add(beat_key(worker), 1);
    } catch (const std::exception&) {
      return;  // the thread that draws will be told
    }
    lock.lock();
    ending_changed.wait_for(lock, kBetweenBeats, [this] { return ending; });
  }
}

// Whether a process has been silent for the time of a lease, as far as this one could see.
bool WorkQueue::Members::is_lost(const std::string& other) {
  const std::int64_t beats = store->add(beat_key(other), 0);
  Sign& sign = signs[other];
  if (beats < 0) return true;  // it has left
  if (beats != sign.beats) sign = {beats, Clock::now()};
  return Clock::now() - sign.since > std::chrono::seconds(options.lease_seconds);
}

std::unique_ptr<WorkQueue> WorkQueue::join(const QueueOptions& options, std::size_t captions,
                                           const std::string& run, const std::function<bool()>& is_needed) {
  // Torch tells of every failed call with its stack; what matters comes as an exception.
  FLAGS_caffe2_log_level = kNoLog;
  auto members = std::make_unique<Members>();
  members->options = options;
  members->captions = captions;
  members->known_done.resize(captions);
  const Clock::time_point end = Clock::now() + kConnecting;
  while (!members->connect(Clock::now() > end)) {
    if (!is_needed()) return nullptr;
  }
  // The process that serves says which run it is; the others wait for it to do so.
  const std::string agreed = members->ask([&] {
    if (options.serves) members->store->set(kRun, std::vector<std::uint8_t>(run.begin(), run.end()));
    return text_of(members->store->get(kRun));
  });
  if (agreed != run) {
    throw Error(ExitCode::usage,
                "queue " + options.address +
                    ": the process that serves it draws another run; give both the same captions and flags");
  }
  members->worker = members->ask([&] { return std::to_string(members->store->add(kWorkers, 1)); });
  return std::unique_ptr<WorkQueue>(new WorkQueue(std::move(members)));
}

WorkQueue::WorkQueue(std::unique_ptr<Members> members) : members_(std::move(members)) {
  members_->heart = std::thread([this] { members_->beat(); });
}

WorkQueue::~WorkQueue() {
  try {
    leave();
  } catch (const std::exception&) {  // there is nobody left to tell
  }
}

// The process that serves takes the queue with it, so it waits for the others.
void WorkQueue::leave() {
  Members& self = *members_;
  {
    const std::lock_guard lock(self.ending_lock);
    self.ending = true;
  }
  self.ending_changed.notify_all();
  if (self.heart.joinable()) self.heart.join();
  constexpr std::int64_t kGone = -(std::int64_t{1} << 40);
  self.store->add(beat_key(self.worker), kGone);
  if (!self.options.serves) return;
  const std::int64_t workers = self.store->add(kWorkers, 0);
  for (std::int64_t other = 1; other <= workers; ++other) {
    while (!self.is_lost(std::to_string(other))) std::this_thread::sleep_for(kBetweenBeats / 4);
  }
}

std::optional<std::size_t> WorkQueue::next() {
  Members& self = *members_;
  return self.ask([&]() -> std::optional<std::size_t> {
    const auto caption = static_cast<std::size_t>(self.store->add(kNext, 1) - 1);
    if (caption >= self.captions) return std::nullopt;
    self.store->set(claim_key(caption), std::vector<std::uint8_t>(self.worker.begin(), self.worker.end()));
    return caption;
  });
}

void WorkQueue::done(std::size_t caption) {
  Members& self = *members_;
  self.ask([&] {
    if (self.store->add(done_key(caption), 1) == 1) self.store->add(kDone, 1);
    return 0;
  });
}

bool WorkQueue::is_complete() {
  Members& self = *members_;
  return self.ask([&] { return self.store->add(kDone, 0) >= static_cast<std::int64_t>(self.captions); });
}

std::optional<std::size_t> WorkQueue::take_over() {
  Members& self = *members_;
  return self.ask([&]() -> std::optional<std::size_t> {
    const std::vector<std::uint8_t> own(self.worker.begin(), self.worker.end());
    for (std::size_t caption = 0; caption < self.captions; ++caption) {
      if (self.known_done[caption]) continue;
      self.known_done[caption] = self.store->add(done_key(caption), 0) > 0;
      if (self.known_done[caption]) continue;
      // A process that was lost between its number and its claim leaves no claim.
      if (!self.store->check({claim_key(caption)})) {
        if (self.store->add(claim_key(caption) + "/orphan", 1) != 1) continue;
        self.store->set(claim_key(caption), own);
        return caption;
      }
      const std::string owner = text_of(self.store->get(claim_key(caption)));
      if (owner == self.worker || !self.is_lost(owner)) continue;
      const std::vector<std::uint8_t> theirs(owner.begin(), owner.end());
      if (text_of(self.store->compareSet(claim_key(caption), theirs, own)) == self.worker) return caption;
    }
    return std::nullopt;
  });
}

void WorkQueue::pause() {
  std::this_thread::sleep_for(kBetweenBeats / 2);
}

}  // namespace lamplighter
