#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>

#include "lamplighter/pipeline.h"
#include "serve/http_error.h"

namespace lamplighter {

// A text that one client waits for. Safe to use from several threads.
class TextJob {
 public:
  TextJob(DescribeRequest request, MethodOptions method, double deadline_s);

  const DescribeRequest request;
  const MethodOptions method;

  // The client does not wait any more.
  void cancel();
  bool is_wanted() const;  // neither cancelled nor failed
  bool is_late() const { return Clock::now() >= deadline_; }

  // For the engine:
  void grow(const std::string& more);
  void complete(Description&& result);
  void fail(const HttpError& error);

  // Waits up to `most` for text that is new, and returns it. Throws the HttpError of a job that failed.
  std::string more(std::chrono::milliseconds most);
  // The result, where it is there and all text was taken; else null. It stays as it is.
  const Description* result() const;

 private:
  using Clock = std::chrono::steady_clock;

  const Clock::time_point deadline_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::string new_;
  std::optional<Description> result_;
  bool cancelled_ = false;
  std::optional<HttpError> error_;
};

}  // namespace lamplighter
