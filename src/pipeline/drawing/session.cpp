#include "pipeline/drawing/session.h"

#include <ATen/Parallel.h>

#include <memory>
#include <utility>
#include <vector>

namespace lamplighter {
namespace {

bool is_guided(const ResolvedRequest& request) {
  return request.sampling.cfg_scale > 1;
}

}  // namespace

Session::Session(const Drawing::Tools& tools, Paint paint, Feed& feed, FedRequest first, const Calls& calls)
    : FeedSession(feed, std::move(first), calls,
                  !tools.models.target->placement().device.is_cpu() || at::get_num_threads() > 1),
      tools_(tools),
      paint_(std::move(paint)),
      guided_(is_guided(kind_)),
      recorder_(tools.method) {}

// Without guidance a picture takes half the rows: it goes beside guided ones, not the other way round.
bool Session::fits(const ResolvedRequest& other) const {
  return other.runs_beside(kind_) && (guided_ || !is_guided(other));
}

RunShape Session::shape() const {
  RunShape shape;
  shape.grid = kind_.grid;
  shape.images = tools_.options.batch_size;
  shape.prompt_rows = manifest().prompt->length;
  shape.guided = shape.varying = guided_;
  shape.graph = tools_.options.graph;
  shape.note = tools_.options.note;
  return shape;
}

void Session::draw() {
  decode(
      tools_.models, tools_.method, shape(), [this](std::int64_t most) { return next(most); },
      [this](const Report& report) {
        after_cycle(report);
        return true;
      },
      BadTarget::is_reported);
}

std::vector<std::int64_t> Session::drop_unwanted() {
  std::vector<std::int64_t> dropped;
  for (const auto& [image, work] : work_) {
    if (work.failed || !feed_.is_wanted(work.fed.number)) dropped.push_back(image);
  }
  for (const std::int64_t image : dropped) {
    work_.erase(image);
    recorder_.take(image);
  }
  return dropped;
}

PendingImages Session::next(std::int64_t most) {
  decoding_ += watch_.lap();
  PendingImages images;
  images.dropped = drop_unwanted();
  std::vector<Condition> conditions;
  while (static_cast<std::int64_t>(conditions.size()) < most) {
    const Work* work = begin();
    if (work == nullptr) break;
    const ResolvedRequest& resolved = work->fed.resolved;
    conditions.push_back(tools_.prompts.encode(*resolved.prompt));
    images.requests.push_back({resolved.sampling, resolved.seed});
  }
  // One that waits for other pictures to end lets nothing pass.
  images.open = !work_.empty() || !images.dropped.empty();
  if (conditions.empty()) return images;
  images.prompts = embed_prompts(tools_.models, conditions, guided_, tools_.method.padded);
  const double text = watch_.lap();
  for (auto work = work_.find(begun_ - static_cast<std::int64_t>(conditions.size())); work != work_.end();
       ++work)
    work->second.text = text;
  return images;
}

void Session::after_cycle(const Report& report) {
  decoding_ += watch_.lap() - report.times.prefill;
  Report wanted{{}, report.times};  // a device reports of dropped images once more
  for (const ImageReport& image : report.images) {
    const auto work = work_.find(image.image);
    if (work == work_.end()) continue;
    if (image.bad_target) fail(work->second, bad_target());
    if (!work->second.failed) wanted.images.push_back(image);
  }
  recorder_.add(wanted);
  for (const ImageReport& image : wanted.images) {
    const Drawn& drawn = recorder_.of(image.image);
    feed_.progress(work_.at(image.image).fed.number, *kind_.grid, drawn.known(),
                   static_cast<std::int64_t>(image.codes.size()));
    if (image.steps == kind_.grid->tokens()) complete(image.image);
  }
  watch_.lap();  // what others do with the news is not decoding
}

void Session::complete(std::int64_t image) {
  Drawn drawn = recorder_.take(image);
  const Work work = work_.at(image);
  require_drafts(tools_, drawn);
  work_.erase(image);
  drawn.statistics.text_ms = work.text;
  drawn.statistics.decode_ms = decoding_ - work.started;
  const ResolvedRequest& resolved = work.fed.resolved;
  const auto result =
      std::make_shared<Result>(Result{{},
                                      {kind_.grid->rows, kind_.grid->columns, std::move(drawn.codes)},
                                      resolved.sampling,
                                      tools_.resolved,
                                      resolved.seed,
                                      resolved.prompt->cut,
                                      std::move(drawn.statistics)});
  hand_over(work.fed.number, [this, result] {
    Stopwatch watch;
    result->image = paint_(result->codes);
    result->statistics.image_ms = watch.lap();
    return std::move(*result);
  });
}

}  // namespace lamplighter
