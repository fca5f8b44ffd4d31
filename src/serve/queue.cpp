#include "serve/queue.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace lamplighter {
namespace {

constexpr int kMostPassing = 8;
constexpr std::ptrdiff_t kLooks = 16;  // how far behind the first one is looked for what fits

const char* const kLate = "the deadline passed before the pictures were complete";

// False where nobody waits for it any more; those who wait for one that is late are told.
bool check_wanted(Order& order) {
  if (order.is_wanted() && order.is_late()) order.fail({504, "deadline_exceeded", kLate});
  return order.is_wanted();
}

}  // namespace

Queue::Queue(std::size_t limit, int slots, OnPicture on_picture)
    : limit_(limit), slots_(slots), on_picture_(std::move(on_picture)) {}

std::shared_ptr<Order> Queue::submit(std::vector<Request> requests, double deadline_s, bool follows) {
  const std::lock_guard lock(mutex_);
  drop_unwanted();
  if (closed_) throw Refusal(503, "shutting_down", "the server is ending", 5);
  const auto slots = static_cast<std::size_t>(slots_);
  if (requests.size() > limit_ + slots) {
    throw Refusal(400, "invalid_value",
                  "got a request for " + std::to_string(requests.size()) + " pictures, expected at most " +
                      std::to_string(limit_ + slots) + ": more than the queue ever holds");
  }
  const std::size_t free = slots - std::min(slots, in_work_.size());
  if (waiting_.size() + requests.size() > limit_ + free) {
    throw Refusal(429, "queue_full",
                  "the queue has no room for " + std::to_string(requests.size()) +
                      " more: " + std::to_string(waiting_.size()) + " pictures wait, at most " +
                      std::to_string(limit_) + " may",
                  seconds_to_wait());
  }
  auto order = std::make_shared<Order>(std::move(requests), deadline_s, follows);
  for (std::size_t i = 0; i < order->requests().size(); ++i) waiting_.push_back({submitted_++, order, i});
  changed_.notify_all();
  return order;
}

void Queue::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

bool Queue::started() const {
  const std::lock_guard lock(mutex_);
  return started_;
}

void Queue::fail(const Refusal& refusal) {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  for (const Place& place : waiting_) place.order->fail(refusal);
  for (const auto& [number, place] : in_work_) place.order->fail(refusal);
  waiting_.clear();
  in_work_.clear();
}

Queue::State Queue::state() const {
  const std::lock_guard lock(mutex_);
  State state{waiting_.size(), in_work_.size(), 0, 0, picture_s_};
  for (const auto& [number, place] : in_work_) {
    state.tokens_done += place.done;
    state.tokens_in_work += place.total;
  }
  return state;
}

// Half of what waits: a place is free long before the queue is empty.
int Queue::seconds_to_wait() const {
  const double seconds = picture_s_ * static_cast<double>(waiting_.size()) / 2;
  return static_cast<int>(std::clamp(std::ceil(seconds), 1.0, 600.0));
}

void Queue::drop_unwanted() {
  const auto unwanted = [](const Place& place) { return !check_wanted(*place.order); };
  if (!waiting_.empty() && unwanted(waiting_.front())) passed_ = 0;
  waiting_.erase(std::remove_if(waiting_.begin(), waiting_.end(), unwanted), waiting_.end());
}

std::deque<Queue::Place>::iterator Queue::choose(const Fits& fits, bool idle) {
  if (waiting_.empty()) return waiting_.end();
  const auto suits = [&](const Place& place) { return fits(place.order->requests()[place.picture]); };
  if (idle || suits(waiting_.front())) {
    passed_ = 0;
    return waiting_.begin();
  }
  if (passed_ == kMostPassing) return waiting_.end();
  const auto end = waiting_.begin() + std::min<std::ptrdiff_t>(kLooks, std::ptrdiff_t(waiting_.size()));
  const auto found = std::find_if(waiting_.begin() + 1, end, suits);
  if (found == end) return waiting_.end();
  ++passed_;
  return found;
}

std::optional<Feed::Entry> Queue::next(const Fits& fits, bool idle) {
  constexpr auto turn = std::chrono::milliseconds(200);  // deadlines and clients are looked at
  std::unique_lock lock(mutex_);
  started_ = true;
  while (true) {
    drop_unwanted();
    const auto chosen = choose(fits, idle);
    if (chosen != waiting_.end()) {
      Place place = std::move(*chosen);
      waiting_.erase(chosen);
      place.waited_s = place.order->elapsed_s();
      Entry entry{place.number, place.order->requests()[place.picture]};
      in_work_[place.number] = std::move(place);
      return entry;
    }
    if (!idle || (closed_ && waiting_.empty())) return std::nullopt;
    changed_.wait_for(lock, turn);
  }
}

bool Queue::is_wanted(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto found = in_work_.find(number);
  if (found == in_work_.end()) return false;
  if (check_wanted(*found->second.order)) return true;
  in_work_.erase(found);
  return false;
}

void Queue::progress(std::uint64_t number, const Grid& grid, const std::vector<std::int32_t>& codes,
                     std::int64_t committed) {
  const std::lock_guard lock(mutex_);
  const auto found = in_work_.find(number);
  if (found == in_work_.end()) return;
  Place& place = found->second;
  place.done += committed;
  place.total = grid.tokens();
  place.order->progress(place.picture, grid, codes, committed);
}

void Queue::picture(std::uint64_t number, Result&& result) {
  Place place;
  {
    const std::lock_guard lock(mutex_);
    const auto found = in_work_.find(number);
    if (found == in_work_.end()) return;
    place = std::move(found->second);
    in_work_.erase(found);
    const double seconds = result.statistics.decode_ms / 1000 / std::max(1, result.statistics.batch);
    picture_s_ = picture_s_ == 0 ? seconds : 0.8 * picture_s_ + 0.2 * seconds;
  }
  on_picture_(result, place.waited_s);
  place.order->complete(place.picture, std::move(result));
}

void Queue::failed(std::uint64_t number, const Error& error) {
  const std::lock_guard lock(mutex_);
  const auto found = in_work_.find(number);
  if (found == in_work_.end()) return;
  found->second.order->fail(to_refusal(error));
  in_work_.erase(found);
}

}  // namespace lamplighter
