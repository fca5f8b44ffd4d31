#include "serve/job.h"

#include <algorithm>
#include <utility>

#include "pipeline/region.h"

namespace lamplighter {

Job::Job(std::vector<Request> requests, double deadline_s, bool follows)
    : requests_(std::move(requests)),
      deadline_(since_ +
                std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(deadline_s))),
      follows_(follows),
      results_(requests_.size()),
      updates_(requests_.size()),
      is_updated_(requests_.size()) {
  for (std::size_t i = 0; i < updates_.size(); ++i) updates_[i].image = i;
}

double Job::elapsed_s() const {
  return std::chrono::duration<double>(Clock::now() - since_).count();
}

void Job::cancel() {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
}

void Job::interrupt() {
  const std::lock_guard lock(mutex_);
  interrupted_ = true;
  changed_.notify_all();
}

bool Job::is_interrupted() const {
  const std::lock_guard lock(mutex_);
  return interrupted_;
}

bool Job::is_wanted() const {
  const std::lock_guard lock(mutex_);
  return !cancelled_ && !interrupted_ && !error_;
}

std::size_t Job::results() const {
  const std::lock_guard lock(mutex_);
  return complete_;
}

bool Job::has_result(std::size_t image) const {
  const std::lock_guard lock(mutex_);
  return results_[image].has_value();
}

Job::Part Job::part(std::size_t image) const {
  const std::lock_guard lock(mutex_);
  const JobUpdate& update = updates_[image];
  return {update.grid, update.codes, update.tokens, update.passes};
}

bool Job::is_late() const {
  return Clock::now() >= deadline_;
}

void Job::progress(std::size_t image, const Grid& grid, const std::vector<std::int32_t>& codes,
                   std::int64_t committed) {
  if (!follows_) return;
  const std::lock_guard lock(mutex_);
  JobUpdate& update = updates_[image];
  update.grid = &grid;
  update.codes = codes;
  update.committed.push_back(committed);
  update.tokens += committed;
  ++update.passes;
  const auto positions = static_cast<std::int64_t>(codes.size());
  const std::optional<Region>& region = requests_[image].region;
  // A part behind kept tokens begins with a call of its own, which has the codes of the next one already.
  // Several candidates are counted as one.
  update.in_order = update.in_order && (!region || region->candidates == 1) &&
                    generated_tokens(grid, requests_[image], positions) >= update.tokens;
  is_updated_[image] = true;
  changed_.notify_all();
}

void Job::complete(std::size_t image, Result&& result) {
  const std::lock_guard lock(mutex_);
  if (interrupted_) return;  // the answer is under way
  results_[image] = std::move(result);
  ++complete_;
  updates_[image].complete = is_updated_[image] = true;
  changed_.notify_all();
}

void Job::fail(const HttpError& error) {
  const std::lock_guard lock(mutex_);
  if (!error_) error_ = error;
  changed_.notify_all();
}

void Job::rethrow() const {
  if (error_) throw HttpError(*error_);
}

std::vector<JobUpdate> Job::updates(std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  const auto is_there = [this] {
    return error_ || std::find(is_updated_.begin(), is_updated_.end(), true) != is_updated_.end();
  };
  changed_.wait_for(lock, most, is_there);
  std::vector<JobUpdate> all;
  for (std::size_t i = 0; i < updates_.size(); ++i) {
    if (!is_updated_[i]) continue;
    all.push_back(updates_[i]);
    updates_[i].committed.clear();
    is_updated_[i] = false;
  }
  if (all.empty()) rethrow();
  return all;
}

bool Job::wait(std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, most, [this] { return error_ || interrupted_ || complete_ == results_.size(); });
  if (complete_ == results_.size() || interrupted_) return true;
  rethrow();
  return false;
}

}  // namespace lamplighter
