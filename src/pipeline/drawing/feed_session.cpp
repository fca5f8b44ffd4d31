#include "pipeline/drawing/feed_session.h"

#include <exception>
#include <string>
#include <utility>

#include "bundle/machine.h"
#include "lamplighter/error.h"

namespace lamplighter {
namespace {

// What became of work that failed, for those who wait for it.
Error told(const std::exception& error) {
  if (const auto* known = dynamic_cast<const Error*>(&error)) return *known;
  if (const std::optional<Error> machine = machine_error(error)) return *machine;
  return {ExitCode::device, std::string("internal: ") + error.what()};
}

}  // namespace

FeedSession::FeedSession(Feed& feed, FedRequest first, const Calls& calls, bool own_thread)
    : feed_(feed), kind_(first.resolved), calls_(calls), waiting_(std::move(first)), worker_(own_thread) {}

std::optional<FedRequest> FeedSession::take(Feed& feed, const Feed::Fits& fits, bool idle,
                                            const Calls& calls) {
  while (std::optional<Feed::Entry> entry = feed.next(fits, idle)) {
    try {
      FedRequest fed{entry->number, calls.resolve(entry->request)};
      calls.tokenise(entry->request, fed.resolved);
      return fed;
    } catch (const std::exception& error) {
      feed.failed(entry->number, told(error));
    }
  }
  return std::nullopt;
}

std::optional<FedRequest> FeedSession::run() {
  try {
    draw();
  } catch (const std::exception& error) {
    const Error news = told(error);
    for (auto& [picture, work] : work_) fail(work, news);
    work_.clear();
  }
  worker_.finish();
  return std::move(waiting_);
}

FeedSession::Work* FeedSession::begin() {
  const Feed::Fits fit = [this](const Request& request) {
    try {
      return fits(calls_.resolve(request));
    } catch (const Error&) {
      return true;  // fails when its turn has come
    }
  };
  if (!waiting_) waiting_ = take(feed_, fit, work_.empty(), calls_);
  if (!waiting_ || !fits(waiting_->resolved)) return nullptr;
  Work& work = work_[begun_++] = {std::move(*waiting_), 0, decoding_, 0, false};
  waiting_.reset();
  return &work;
}

void FeedSession::fail(Work& work, const Error& error) {
  if (!std::exchange(work.failed, true)) feed_.failed(work.fed.number, error);
}

void FeedSession::hand_over(std::uint64_t number, std::function<Result()> complete) {
  worker_.add([this, number, complete = std::move(complete)] {
    try {
      feed_.picture(number, complete());
    } catch (const std::exception& error) {
      feed_.failed(number, told(error));
    }
  });
}

}  // namespace lamplighter
