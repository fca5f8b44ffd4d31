#include "serve/order.h"

#include <algorithm>
#include <utility>

namespace lamplighter {

Order::Order(std::vector<Request> requests, double deadline_s, bool follows)
    : requests_(std::move(requests)),
      deadline_(since_ +
                std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(deadline_s))),
      follows_(follows),
      results_(requests_.size()),
      news_(requests_.size()),
      is_new_(requests_.size()) {
  for (std::size_t i = 0; i < news_.size(); ++i) news_[i].picture = i;
}

double Order::elapsed_s() const {
  return std::chrono::duration<double>(Clock::now() - since_).count();
}

void Order::cancel() {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
}

bool Order::is_wanted() const {
  const std::lock_guard lock(mutex_);
  return !cancelled_ && !refusal_;
}

bool Order::is_late() const {
  return Clock::now() >= deadline_;
}

void Order::progress(std::size_t picture, const Grid& grid, const std::vector<std::int32_t>& codes,
                     std::int64_t committed) {
  if (!follows_) return;
  const std::lock_guard lock(mutex_);
  News& news = news_[picture];
  news.grid = &grid;
  news.codes = codes;
  news.committed.push_back(committed);
  news.tokens += committed;
  news.in_order = news.in_order && static_cast<std::int64_t>(codes.size()) == news.tokens;
  is_new_[picture] = true;
  changed_.notify_all();
}

void Order::complete(std::size_t picture, Result&& result) {
  const std::lock_guard lock(mutex_);
  results_[picture] = std::move(result);
  ++complete_;
  news_[picture].complete = is_new_[picture] = true;
  changed_.notify_all();
}

void Order::fail(const Refusal& refusal) {
  const std::lock_guard lock(mutex_);
  if (!refusal_) refusal_ = refusal;
  changed_.notify_all();
}

void Order::rethrow() const {
  if (refusal_) throw Refusal(*refusal_);
}

std::vector<Order::News> Order::news(std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  const auto is_there = [this] {
    return refusal_ || std::find(is_new_.begin(), is_new_.end(), true) != is_new_.end();
  };
  changed_.wait_for(lock, most, is_there);
  std::vector<News> all;
  for (std::size_t i = 0; i < news_.size(); ++i) {
    if (!is_new_[i]) continue;
    all.push_back(news_[i]);
    news_[i].committed.clear();
    is_new_[i] = false;
  }
  if (all.empty()) rethrow();
  return all;
}

bool Order::wait(std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, most, [this] { return refusal_ || complete_ == results_.size(); });
  if (complete_ == results_.size()) return true;
  rethrow();
  return false;
}

}  // namespace lamplighter
