#include "pipeline/drawing/drawing.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "lamplighter/error.h"
#include "propose/method.h"

namespace lamplighter {
namespace {

bool is_on_cpu(const Drawing::Tools& tools) {
  return tools.models.target->placement().device.is_cpu();
}

}  // namespace

// A device takes the kernels of every thread one after the other, and may be capturing cycles: there prompts
// are not read ahead.
Drawing::Drawing(const Tools& tools, const std::vector<ResolvedRequest>& requests, const RequestGroup& group,
                 Calls calls)
    : tools_(tools),
      requests_(requests),
      group_(group),
      calls_(std::move(calls)),
      grid_(*requests[group.begin].grid),
      recorder_(tools.method),
      reader_(tools.prompts, requests, is_on_cpu(tools) && at::get_num_threads() > 1),
      next_(group.begin),
      worker_(!is_on_cpu(tools) || at::get_num_threads() > 1) {
  for (std::size_t i = group_.begin; i < group_.end; ++i)
    draws_.push_back({requests_[i].sampling, requests_[i].seed});
  guided_ = is_guided(draws_);
  padded_ = tools_.method.padded;
}

std::size_t Drawing::slots() const {
  return std::min(group_.end - group_.begin, static_cast<std::size_t>(tools_.options.batch_size));
}

RunShape Drawing::shape() const {
  RunShape shape;
  shape.grid = &grid_;
  shape.images = static_cast<std::int64_t>(slots());
  if (padded_) shape.prompt_rows = manifest().prompt->length;
  for (std::size_t i = group_.begin; i < group_.end; ++i)
    shape.prompt_rows = std::max(shape.prompt_rows, requests_[i].prompt->rows());
  shape.guided = guided_;
  shape.varying = guided_ && is_varying(manifest().schedule, draws_);
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

bool Drawing::has_next() {
  for (; next_ < group_.end; ++next_) {
    const Turn turn = calls_.turn(next_);
    if (turn == Turn::draw) return true;
    if (turn == Turn::stop) next_ = group_.end - 1;  // nothing is left behind this one
  }
  return false;
}

PendingImages Drawing::next(std::int64_t most) {
  // A device that holds the caches and has no room to paint says so before pictures are decoded for nothing.
  if (begun_.empty() && !is_on_cpu(tools_)) {
    calls_.paint(
        {grid_.rows, grid_.columns, std::vector<std::int32_t>(static_cast<std::size_t>(grid_.tokens()))});
  }
  decoding_ += watch_.lap();
  const std::size_t first = begun_.size();
  PendingImages images;
  std::vector<Condition> conditions;
  while (begun_.size() - first < static_cast<std::size_t>(most) && has_next()) {
    conditions.push_back(reader_.read(next_));
    images.requests.push_back(draws_[next_ - group_.begin]);
    begun_.push_back(next_++);
  }
  if (conditions.empty()) return images;
  images.prompts = embed_prompts(tools_.models, conditions, guided_, padded_);
  reader_.read_ahead(next_, std::min(group_.end, next_ + slots()));
  const double text = watch_.lap();
  for (std::size_t image = first; image < begun_.size(); ++image)
    times_[image] = {text, decoding_, decoding_};
  return images;
}

bool Drawing::after_cycle(const Report& report) {
  decoding_ += watch_.lap() - report.times.prefill;
  recorder_.add(report);
  for (const ImageReport& image : report.images) {
    if (!image.codes.empty()) times_[static_cast<std::size_t>(image.image)].finished = decoding_;
  }
  const bool go_on = tell_progress();
  while (go_on && handed_ < begun_.size() && drawn(handed_).statistics.tokens == grid_.tokens()) {
    hand_over(handed_++);
  }
  watch_.lap();  // what callers do with the news is not decoding
  return go_on;
}

bool Drawing::tell_progress() {
  if (!calls_.on_progress) return true;
  const std::unique_lock lock(callbacks_, std::try_to_lock);
  if (!lock) return true;  // the next cycle has news, too
  Progress progress;
  for (std::size_t image = handed_; image < begun_.size(); ++image) {
    progress.requests.push_back(begun_[image]);
    progress.tokens_done += drawn(image).statistics.tokens;
  }
  progress.tokens_total = static_cast<std::int64_t>(progress.requests.size()) * grid_.tokens();
  progress.run_done =
      group_.tokens_before + static_cast<std::int64_t>(handed_) * grid_.tokens() + progress.tokens_done;
  progress.run_total = group_.tokens_all;
  progress.grid = &grid_;
  progress.codes = [this](std::size_t index) { return drawn(handed_ + index).known(); };
  return calls_.on_progress(progress);
}

// Drawn children show a drafter whose logits are NaN or infinite; where the most probable ones are taken, it
// drafts nothing. Pictures are right without it, but the user asked for more. Some cycles have no room for a
// draft, at the ends of rows and of the picture.
void require_drafts(const Drawing::Tools& tools, const Drawn& drawn) {
  constexpr std::size_t few = 4;  // cycles
  const std::vector<std::int64_t>& drafted = drawn.statistics.drafted;
  const bool none = drawn.statistics.cycles.size() >= few && !drafted.empty() &&
                    std::all_of(drafted.begin(), drafted.end(), [](auto n) { return n == 0; });
  if (tools.models.drafter == nullptr || !(drawn.bad_draft || none)) return;
  throw Error(
      ExitCode::bundle,
      "drafter " + tools.resolved.drafter +
          ": got logits that are NaN or infinite, expected finite numbers; its weights are damaged or "
          "the dtype is too narrow for them");
}

void Drawing::hand_over(std::size_t image) {
  Drawn drawn = recorder_.take(static_cast<std::int64_t>(image));
  const std::size_t request = begun_[image];
  Statistics& statistics = drawn.statistics;
  require_drafts(tools_, drawn);
  const Times times = times_[image];
  times_.erase(image);
  statistics.text_ms = times.text;
  statistics.decode_ms = times.finished - times.started;
  const DecodeRequest& draw = draws_[request - group_.begin];
  const auto result = std::make_shared<Result>(Result{{},
                                                      {grid_.rows, grid_.columns, std::move(drawn.codes)},
                                                      draw.sampling,
                                                      tools_.resolved,
                                                      draw.seed,
                                                      requests_[request].prompt->cut,
                                                      std::move(statistics)});
  worker_.add([this, request, result] {
    Stopwatch watch;
    result->image = calls_.paint(result->codes);
    result->statistics.image_ms = watch.lap();
    const std::lock_guard lock(callbacks_);
    calls_.on_result(request, std::move(*result));
  });
}

}  // namespace lamplighter
