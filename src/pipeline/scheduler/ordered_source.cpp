#include "pipeline/scheduler/ordered_source.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "lamplighter/error.h"

namespace lamplighter {

std::optional<ScheduledRequest> OrderedSource::next(const Fits& fits, bool /*is_idle*/) {
  while (next_ < requests_.size() && fits(requests_[next_])) {
    const std::size_t asked = next_++;
    const Admission admission =
        callbacks_.on_admission ? callbacks_.on_admission(asked) : Admission::generate;
    if (admission == Admission::generate) return ScheduledRequest{asked, requests_[asked]};
    if (admission == Admission::stop) next_ = requests_.size();
  }
  return std::nullopt;
}

const RequestGroup& OrderedSource::group_of(std::size_t request) const {
  return *std::find_if(groups_.begin(), groups_.end(),
                       [&](const RequestGroup& group) { return request < group.end; });
}

RunLimits OrderedSource::limits(const ScheduledRequest& first) const {
  const RequestGroup& group = group_of(first.number);
  RunLimits limits{static_cast<std::int64_t>(std::min(count_candidates(requests_, group), slots_))};
  for (std::size_t i = group.begin; i < group.end; ++i) limits.known.push_back(&requests_[i]);
  return limits;
}

std::vector<PromptPointer> OrderedSource::upcoming() const {
  std::vector<PromptPointer> prompts;
  if (next_ == requests_.size()) return prompts;
  const std::size_t end = std::min(group_of(next_ - 1).end, next_ + slots_);
  for (std::size_t i = next_; i < end; ++i) prompts.push_back(requests_[i].prompt);
  return prompts;
}

void OrderedSource::progress(const ScheduledImages& images, const CodesOf& codes) {
  if (!callbacks_.on_progress) return;
  const std::unique_lock lock(calling_, std::try_to_lock);
  if (!lock) return;  // the next step reports, too
  const auto& [first, oldest] = *images.begin();
  const RequestGroup& group = group_of(oldest.scheduled.number);
  Progress progress;
  for (const auto& [number, image] : images) {
    progress.requests.push_back(image.scheduled.number);
    progress.tokens_done += image.tokens;
  }
  progress.grid = oldest.scheduled.request.grid;
  const std::int64_t tokens = progress.grid->tokens();  // of an image
  progress.tokens_total = static_cast<std::int64_t>(images.size()) * tokens;
  progress.run_done = group.tokens_before + first * tokens + progress.tokens_done;
  progress.run_total = group.tokens_all;
  progress.codes = [&, oldest_number = first](std::size_t index) {
    return codes(oldest_number + static_cast<std::int64_t>(index));
  };
  if (!callbacks_.on_progress(progress)) throw Error(ExitCode::interrupted, "stopped");
}

void OrderedSource::complete(std::uint64_t number, Result&& result) {
  const std::lock_guard lock(calling_);
  callbacks_.on_result(number, std::move(result));
}

}  // namespace lamplighter
