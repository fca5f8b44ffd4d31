#include "pipeline/drawing.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "propose/method.h"

namespace lamplighter {

Drawing::Drawing(const Tools& tools, const std::vector<ResolvedRequest>& requests, const RequestGroup& group,
                 Paint paint, const ResultCallback& on_result, const ProgressCallback& on_progress)
    : tools_(tools),
      requests_(requests),
      group_(group),
      paint_(std::move(paint)),
      on_result_(on_result),
      on_progress_(on_progress),
      grid_(*requests[group.begin].grid),
      recorder_(tools.method),
      begun_(group.begin),
      handed_(group.begin),
      worker_(!tools.models.target->placement().device.is_cpu() || at::get_num_threads() > 1) {
  for (std::size_t i = group_.begin; i < group_.end; ++i)
    draws_.push_back({requests_[i].sampling, requests_[i].seed});
  guided_ = is_guided(draws_);
  padded_ = tools_.method.padded;
}

RunShape Drawing::shape() const {
  const std::size_t slots =
      std::min(group_.end - group_.begin, static_cast<std::size_t>(tools_.options.batch_size));
  RunShape shape;
  shape.grid = &grid_;
  shape.images = static_cast<std::int64_t>(slots);
  if (padded_) shape.prompt_rows = manifest().prompt->length;
  for (std::size_t i = group_.begin; i < group_.end; ++i)
    shape.prompt_rows = std::max(shape.prompt_rows, requests_[i].prompt->rows());
  shape.guided = guided_;
  shape.partly_guided = guided_ && is_partly_guided(draws_);
  shape.graph = tools_.options.graph;
  shape.note = tools_.options.note;
  return shape;
}

void Drawing::run() {
  decode(
      tools_.models, tools_.method, shape(), [this](std::int64_t most) { return next(most); },
      [this](const Report& report) { return after_cycle(report); });
  worker_.finish();
}

bool Drawing::is_repeated(std::size_t request) const {
  return request != group_.begin && requests_[request].prompt == requests_[request - 1].prompt;
}

PendingImages Drawing::next(std::int64_t most) {
  // A device that holds the caches and has no room to paint says so before pictures are decoded for nothing.
  if (begun_ == group_.begin && !tools_.models.target->placement().device.is_cpu())
    paint_({grid_.rows, grid_.columns, std::vector<std::int32_t>(static_cast<std::size_t>(grid_.tokens()))});
  decoding_ += watch_.lap();
  const std::size_t first = begun_, end = std::min(group_.end, begun_ + static_cast<std::size_t>(most));
  PendingImages images;
  if (first == end) return images;
  std::vector<Condition> conditions;
  for (; begun_ < end; ++begun_) {
    if (!is_repeated(begun_)) condition_ = tools_.prompts.encode(*requests_[begun_].prompt);
    conditions.push_back(condition_);
    images.requests.push_back(draws_[begun_ - group_.begin]);
  }
  images.prompts = embed_prompts(*tools_.models.target, conditions, guided_, padded_);
  const double text = watch_.lap();
  for (std::size_t i = first; i < end; ++i) times_[i] = {text, decoding_, decoding_};
  return images;
}

bool Drawing::after_cycle(const Report& report) {
  decoding_ += watch_.lap() - report.times.prefill;
  recorder_.add(report);
  for (const ImageReport& image : report.images) {
    if (!image.codes.empty())
      times_[group_.begin + static_cast<std::size_t>(image.image)].finished = decoding_;
  }
  const bool go_on = tell_progress();
  while (go_on && handed_ < begun_ &&
         static_cast<std::int64_t>(drawn(handed_).codes.size()) == grid_.tokens()) {
    hand_over(handed_++);
  }
  watch_.lap();  // what callers do with the news is not decoding
  return go_on;
}

bool Drawing::tell_progress() {
  if (!on_progress_) return true;
  const std::unique_lock lock(callbacks_, std::try_to_lock);
  if (!lock) return true;  // the next cycle has news, too
  Progress progress;
  progress.first_request = handed_;
  progress.batch = begun_ - handed_;
  for (std::size_t i = handed_; i < begun_; ++i)
    progress.tokens_done += static_cast<std::int64_t>(drawn(i).codes.size());
  progress.tokens_total = static_cast<std::int64_t>(progress.batch) * grid_.tokens();
  progress.run_done = group_.tokens_before +
                      static_cast<std::int64_t>(handed_ - group_.begin) * grid_.tokens() +
                      progress.tokens_done;
  progress.run_total = group_.tokens_all;
  progress.grid = &grid_;
  progress.codes = [this](std::size_t index) { return drawn(handed_ + index).codes; };
  return on_progress_(progress);
}

void Drawing::hand_over(std::size_t request) {
  Drawn drawn = recorder_.take(static_cast<std::int64_t>(request - group_.begin));
  Statistics& statistics = drawn.statistics;
  const Times times = times_[request];
  times_.erase(request);
  statistics.text_ms = times.text;
  statistics.decode_ms = times.finished - times.started;
  const DecodeRequest& draw = draws_[request - group_.begin];
  const auto result = std::make_shared<Result>(Result{{},
                                                      {grid_.rows, grid_.columns, std::move(drawn.codes)},
                                                      draw.sampling,
                                                      tools_.resolved,
                                                      draw.seed,
                                                      std::move(statistics)});
  worker_.add([this, request, result] {
    Stopwatch watch;
    result->image = paint_(result->codes);
    result->statistics.image_ms = watch.lap();
    const std::lock_guard lock(callbacks_);
    on_result_(request, std::move(*result));
  });
}

}  // namespace lamplighter
