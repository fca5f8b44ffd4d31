#include "serve/text_job.h"

#include <utility>

namespace lamplighter {

TextJob::TextJob(DescribeRequest asked, MethodOptions its_method, double deadline_s)
    : request(std::move(asked)),
      method(std::move(its_method)),
      deadline_(Clock::now() +
                std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(deadline_s))) {}

void TextJob::cancel() {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
}

bool TextJob::is_wanted() const {
  const std::lock_guard lock(mutex_);
  return !cancelled_ && !error_;
}

void TextJob::grow(const std::string& more) {
  const std::lock_guard lock(mutex_);
  new_ += more;
  if (!more.empty()) changed_.notify_all();
}

void TextJob::complete(Description&& result) {
  const std::lock_guard lock(mutex_);
  result_ = std::move(result);
  changed_.notify_all();
}

void TextJob::fail(const HttpError& error) {
  const std::lock_guard lock(mutex_);
  if (!error_) error_ = error;
  changed_.notify_all();
}

std::string TextJob::more(std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, most, [this] { return error_ || result_ || !new_.empty(); });
  if (error_) throw HttpError(*error_);
  return std::exchange(new_, {});
}

const Description* TextJob::result() const {
  const std::lock_guard lock(mutex_);
  return result_ && new_.empty() ? &*result_ : nullptr;
}

}  // namespace lamplighter
