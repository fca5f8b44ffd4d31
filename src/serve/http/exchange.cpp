#include "serve/http/exchange.h"

#include <utility>

namespace lamplighter {

bool Exchange::push(Bytes bytes) {
  {
    std::unique_lock lock(mutex_);
    is_slow_ = !changed_.wait_for(lock, is_slow_ ? kImpatience : kPatience,
                                  [this] { return abandoned_ || unsent_ < kMostUnsent; });
    if (abandoned_) return false;
    unsent_ += bytes->size();
    new_.push_back(std::move(bytes));
  }
  wake_();
  return true;
}

void Exchange::finish(bool keeps_connection) {
  {
    const std::lock_guard lock(mutex_);
    finished_ = true;
    keeps_ = keeps_connection;
  }
  wake_();
}

bool Exchange::take(std::deque<Bytes>& out, bool& keeps_connection) {
  const std::lock_guard lock(mutex_);
  for (Bytes& bytes : new_) out.push_back(std::move(bytes));
  new_.clear();
  keeps_connection = keeps_;
  return finished_;
}

void Exchange::sent(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  unsent_ -= bytes;
  changed_.notify_all();
}

void Exchange::abandon() {
  *gone = true;
  const std::lock_guard lock(mutex_);
  abandoned_ = true;
  new_.clear();
  changed_.notify_all();
}

}  // namespace lamplighter
