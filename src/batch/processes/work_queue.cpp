#include "batch/processes/work_queue.h"

#include <c10/util/Exception.h>
#include <c10/util/Flags.h>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <algorithm>
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

// Torch looks up the name of every address, which takes seconds where a name server is slow.
constexpr milliseconds kConnecting{60'000}, kFirstTry{2'000}, kLongestTry{16'000}, kAnswering{20'000},
    kBetweenBeats{1'000};
constexpr int kNoLog = 4;  // above fatal
constexpr const char *kNext = "next", *kWorkers = "workers", *kRun = "run";

[[noreturn]] void lost_server(const std::string& address) {
  throw Error(ExitCode::some_failed,
              "queue " + address +
                  ": lost the process that serves it; restart that process, then run the "
                  "same command again");
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

std::vector<std::uint8_t> bytes_of(const std::string& text) {
  return {text.begin(), text.end()};
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
  std::string worker;  // unique, also after a restart
  // Heartbeats of other processes, and when their count last changed.
  struct Sign {
    std::int64_t beats = -1;
    Clock::time_point since;
  };
  std::map<std::string, Sign> signs;
  std::vector<bool> known_done;  // captions that are known to be done
  std::mutex ending_lock;
  std::condition_variable ending_changed;
  bool ending = false;
  std::thread heart;

  // Runs f() and turns errors of the store into Error.
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
  bool connect(milliseconds within, bool is_last);
  void beat();
  bool is_lost(const std::string& other);
  bool claim(std::size_t caption, const std::string& owner);
};

// Tries to connect. Returns false when no process answers; throws in the last try, and when this process
// cannot serve.
bool WorkQueue::Members::connect(milliseconds within, bool is_last) {
  const auto [host, port] = parse_address(options.address);
  c10d::TCPStoreOptions how;
  how.port = port;
  how.isServer = options.serves;
  how.waitWorkers = false;
  how.timeout = within;
  try {
    store = std::make_unique<c10d::TCPStore>(host, how);
    store->setTimeout(kAnswering);
    return true;
  } catch (const std::exception& error) {
    if (!options.serves && !is_last) return false;
    const std::string why = error.what();
    throw Error(ExitCode::some_failed, "queue " + options.address + ": " +
                                           (options.serves ? "cannot be served" : "no process serves it") +
                                           ": " + why.substr(0, why.find('\n')));
  }
}

void WorkQueue::Members::beat() {
  std::unique_lock lock(ending_lock);
  while (!ending) {
    lock.unlock();
    try {
      store->add(beat_key(worker), 1);
    } catch (const std::exception&) {
      return;  // the generating thread will get the error
    }
    lock.lock();
    ending_changed.wait_for(lock, kBetweenBeats, [this] { return ending; });
  }
}

// Whether this process has seen no heartbeat of another one for the time of a lease.
bool WorkQueue::Members::is_lost(const std::string& other) {
  const std::int64_t beats = store->add(beat_key(other), 0);
  Sign& sign = signs[other];
  if (beats < 0) return true;  // it has left the queue
  if (beats != sign.beats) sign = {beats, Clock::now()};
  return Clock::now() - sign.since > std::chrono::seconds(options.lease_seconds);
}

std::unique_ptr<WorkQueue> WorkQueue::join(const QueueOptions& options, std::size_t captions,
                                           const std::string& run, const std::function<bool()>& is_needed) {
  // Torch logs every failed call with its stack; the exceptions carry all we need.
  FLAGS_caffe2_log_level = kNoLog;
  auto members = std::make_unique<Members>();
  members->options = options;
  members->captions = captions;
  members->known_done.resize(captions);
  const Clock::time_point end = Clock::now() + kConnecting;
  milliseconds within = options.serves ? kConnecting : kFirstTry;
  while (!members->connect(within, Clock::now() + within > end)) {
    if (!is_needed()) return nullptr;
    within = std::min(2 * within, kLongestTry);
  }
  // The serving process publishes the run; the others wait for it.
  const std::string agreed = members->ask([&] {
    if (options.serves) members->store->set(kRun, bytes_of(run));
    return text_of(members->store->get(kRun));
  });
  if (agreed != run) {
    throw Error(
        ExitCode::usage,
        "queue " + options.address +
            ": the process that serves it generates another run; use the same captions and flags for both");
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
  } catch (const std::exception&) {  // destructors do not throw
  }
}

// The serving process waits for the others, because the queue ends with it.
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

// Makes this process the owner of a caption; `owner` is who has it, empty: nobody. Returns false when another
// process was faster.
bool WorkQueue::Members::claim(std::size_t caption, const std::string& owner) {
  return text_of(store->compareSet(claim_key(caption), bytes_of(owner), bytes_of(worker))) == worker;
}

std::optional<std::size_t> WorkQueue::next() {
  Members& self = *members_;
  return self.ask([&]() -> std::optional<std::size_t> {
    for (;;) {
      const auto caption = static_cast<std::size_t>(self.store->add(kNext, 1) - 1);
      if (caption >= self.captions) return std::nullopt;
      if (self.claim(caption, "")) return caption;
    }
  });
}

void WorkQueue::done(std::size_t caption) {
  Members& self = *members_;
  self.ask([&] { return self.store->add(done_key(caption), 1); });
}

bool WorkQueue::is_complete() const {
  const std::vector<bool>& done = members_->known_done;
  return std::all_of(done.begin(), done.end(), [](bool is_done) { return is_done; });
}

std::optional<std::size_t> WorkQueue::take_over() {
  Members& self = *members_;
  return self.ask([&]() -> std::optional<std::size_t> {
    for (std::size_t caption = 0; caption < self.captions; ++caption) {
      if (self.known_done[caption]) continue;
      self.known_done[caption] = self.store->add(done_key(caption), 0) > 0;
      if (self.known_done[caption]) continue;
      // A process that was lost before its claim leaves none.
      const bool has_owner = self.store->check({claim_key(caption)});
      const std::string owner = has_owner ? text_of(self.store->get(claim_key(caption))) : "";
      if (has_owner && (owner == self.worker || !self.is_lost(owner))) continue;
      if (self.claim(caption, owner)) return caption;
    }
    return std::nullopt;
  });
}

void WorkQueue::pause() {
  std::this_thread::sleep_for(kBetweenBeats / 2);
}

}  // namespace lamplighter
