#include "serve/queue.h"
#include "base/format.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "pipeline/region.h"

namespace lamplighter {
namespace {

constexpr int kMostPassing = 8;
constexpr std::ptrdiff_t kMostExamined = 16;  // behind the first one, to find a request that fits

const char* const kLate = "the deadline passed before the answer was complete";

std::size_t count_all(const std::vector<Request>& requests) {
  std::size_t count = 0;
  for (const Request& request : requests) count += count_candidates(request);
  return count;
}

// False where nobody waits for the job any more. One that is late fails.
template <class AnyJob>
bool check_wanted(AnyJob& job) {
  if (job.is_wanted() && job.is_late()) job.fail({504, "deadline_exceeded", kLate});
  return job.is_wanted();
}

}  // namespace

Queue::Queue(std::size_t limit, int slots, OnImage on_image)
    : limit_(limit), slots_(slots), on_image_(std::move(on_image)) {}

std::shared_ptr<Job> Queue::submit(std::vector<Request> requests, double deadline_s, bool follows) {
  const std::lock_guard lock(mutex_);
  drop_unwanted();
  check_room(count_all(requests));
  auto job = std::make_shared<Job>(std::move(requests), deadline_s, follows);
  for (std::size_t i = 0; i < job->requests().size(); ++i) waiting_.push_back({submitted_++, job, i});
  changed_.notify_all();
  return job;
}

void Queue::check_room(std::size_t wanted) const {
  if (closed_) throw HttpError(503, "shutting_down", "the server is stopping", 5);
  const auto slots = static_cast<std::size_t>(slots_);
  const std::size_t waiting = count_waiting();
  if (wanted > limit_ + slots) {
    throw HttpError(400, "invalid_value",
                    "got a request for " + counted(wanted, "image") + ", expected at most " +
                        std::to_string(limit_ + slots) + ", the size of the queue");
  }
  const std::size_t free = slots - std::min(slots, in_work_.size());
  if (waiting + wanted > limit_ + free) {
    throw HttpError(429, "queue_full",
                    "the queue has no room for " + std::to_string(wanted) + " more: images that wait: " +
                        std::to_string(waiting) + ", at most " + std::to_string(limit_),
                    seconds_to_wait());
  }
}

void Queue::submit(std::shared_ptr<TextJob> text) {
  const std::lock_guard lock(mutex_);
  drop_unwanted();
  check_room(1);
  texts_.push_back({submitted_++, std::move(text)});
  changed_.notify_all();
}

bool Queue::is_turn_of_text() const {
  return !texts_.empty() && (waiting_.empty() || texts_.front().number < waiting_.front().number);
}

std::shared_ptr<TextJob> Queue::next_text() {
  const std::lock_guard lock(mutex_);
  text_in_work_.reset();
  drop_unwanted();
  if (!is_turn_of_text()) return nullptr;
  text_in_work_ = std::move(texts_.front().job);
  texts_.pop_front();
  return text_in_work_;
}

bool Queue::is_over() const {
  const std::lock_guard lock(mutex_);
  return closed_ && waiting_.empty() && texts_.empty();
}

void Queue::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

void Queue::fail(const HttpError& error) {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  for (const QueuedImage& entry : waiting_) entry.job->fail(error);
  for (const auto& [number, entry] : in_work_) entry.job->fail(error);
  for (const QueuedText& text : texts_) text.job->fail(error);
  if (text_in_work_) text_in_work_->fail(error);
  texts_.clear();
  waiting_.clear();
  in_work_.clear();
}

Queue::State Queue::state() const {
  const std::lock_guard lock(mutex_);
  State state;
  state.waiting = waiting_.size();
  state.in_work = in_work_.size();
  state.texts = texts_.size() + (text_in_work_ ? 1 : 0);
  state.image_s = image_s_;
  std::set<const Job*> jobs;
  for (const QueuedImage& entry : waiting_) jobs.insert(entry.job.get());
  for (const auto& [number, entry] : in_work_) {
    state.tokens_done += entry.done;
    state.tokens_in_work += entry.total;
    jobs.insert(entry.job.get());
  }
  for (const Job* job : jobs) state.complete += job->results();
  return state;
}

std::size_t Queue::count_waiting() const {
  std::size_t count = texts_.size();
  for (const QueuedImage& entry : waiting_) count += count_candidates(entry.job->requests()[entry.image]);
  return count;
}

// Half of what waits: there is room long before the queue is empty.
int Queue::seconds_to_wait() const {
  const double seconds = image_s_ * static_cast<double>(waiting_.size()) / 2;
  return static_cast<int>(std::clamp(std::ceil(seconds), 1.0, 600.0));
}

void Queue::drop_unwanted() {
  const auto unwanted = [](const QueuedImage& entry) { return !check_wanted(*entry.job); };
  if (!waiting_.empty() && unwanted(waiting_.front())) passed_ = 0;
  waiting_.erase(std::remove_if(waiting_.begin(), waiting_.end(), unwanted), waiting_.end());
  const auto no_text = [](const QueuedText& text) { return !check_wanted(*text.job); };
  texts_.erase(std::remove_if(texts_.begin(), texts_.end(), no_text), texts_.end());
}

std::deque<Queue::QueuedImage>::iterator Queue::choose(const Fits& fits, bool is_idle) {
  if (waiting_.empty()) return waiting_.end();
  const auto suits = [&](const QueuedImage& entry) { return fits(entry.job->requests()[entry.image]); };
  if (is_idle || suits(waiting_.front())) {
    passed_ = 0;
    return waiting_.begin();
  }
  if (passed_ == kMostPassing) return waiting_.end();
  const auto end =
      waiting_.begin() + std::min<std::ptrdiff_t>(kMostExamined, std::ptrdiff_t(waiting_.size()));
  const auto found = std::find_if(waiting_.begin() + 1, end, suits);
  if (found == end) return waiting_.end();
  ++passed_;
  return found;
}

std::optional<RequestSource::Entry> Queue::next(const Fits& fits, bool is_idle) {
  constexpr auto poll = std::chrono::milliseconds(200);  // of deadlines and of clients that leave
  std::unique_lock lock(mutex_);
  started_ = true;
  while (true) {
    drop_unwanted();
    if (is_turn_of_text()) return std::nullopt;
    const auto chosen = choose(fits, is_idle);
    if (chosen != waiting_.end()) {
      QueuedImage entry = std::move(*chosen);
      waiting_.erase(chosen);
      entry.waited_s = entry.job->elapsed_s();
      Entry begun{entry.number, entry.job->requests()[entry.image]};
      in_work_[entry.number] = std::move(entry);
      return begun;
    }
    if (!is_idle || (closed_ && waiting_.empty())) return std::nullopt;
    changed_.wait_for(lock, poll);
  }
}

bool Queue::is_wanted(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto found = in_work_.find(number);
  if (found == in_work_.end()) return false;
  if (check_wanted(*found->second.job)) return true;
  in_work_.erase(found);
  return false;
}

void Queue::progress(std::uint64_t number, const Grid& grid, const std::vector<std::int32_t>& codes,
                     std::int64_t committed) {
  const std::lock_guard lock(mutex_);
  const auto found = in_work_.find(number);
  if (found == in_work_.end()) return;
  QueuedImage& entry = found->second;
  entry.done += committed;
  entry.total = generated_tokens(grid, entry.job->requests()[entry.image]);
  entry.job->progress(entry.image, grid, codes, committed);
}

void Queue::complete(std::uint64_t number, Result&& result) {
  QueuedImage entry;
  {
    const std::lock_guard lock(mutex_);
    const auto found = in_work_.find(number);
    if (found == in_work_.end()) return;
    entry = std::move(found->second);
    in_work_.erase(found);
    const double seconds = result.statistics.decode_ms / 1000 / std::max(1, result.statistics.batch);
    image_s_ = image_s_ == 0 ? seconds : 0.8 * image_s_ + 0.2 * seconds;
  }
  on_image_(result, {entry.waited_s, entry.job->elapsed_s() - entry.waited_s});
  entry.job->complete(entry.image, std::move(result));
}

void Queue::fail(std::uint64_t number, const Error& error) {
  const std::lock_guard lock(mutex_);
  const auto found = in_work_.find(number);
  if (found == in_work_.end()) return;
  found->second.job->fail(to_http_error(error));
  in_work_.erase(found);
}

}  // namespace lamplighter
