#include "pipeline/session.h"

#include <ATen/Parallel.h>

#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include "bundle/machine.h"
#include "lamplighter/error.h"

namespace lamplighter {
namespace {

bool is_guided(const ResolvedRequest& request) {
  return request.sampling.cfg_scale > 1;
}

}  // namespace

Error told(const std::exception& error) {
  if (const auto* known = dynamic_cast<const Error*>(&error)) return *known;
  if (const std::optional<Error> machine = machine_error(error)) return *machine;
  return {ExitCode::device, std::string("internal: ") + error.what()};
}

Session::Session(const Drawing::Tools& tools, Feed& feed, FedRequest first, const Calls& calls)
    : tools_(tools),
      feed_(feed),
      calls_(calls),
      kind_(first.resolved),
      guided_(is_guided(first.resolved)),
      waiting_(std::move(first)),
      recorder_(tools.method),
      worker_(!tools.models.target->placement().device.is_cpu() || at::get_num_threads() > 1) {}

// Without guidance a picture takes half the rows: it goes beside guided ones, not the other way round.
bool Session::fits(const ResolvedRequest& other) const {
  return other.runs_beside(kind_) && (guided_ || !is_guided(other));
}

RunShape Session::shape() const {
  RunShape shape;
  shape.grid = kind_.grid;
  shape.images = tools_.options.batch_size;
  shape.prompt_rows = manifest().prompt->length;
  shape.guided = shape.partly_guided = guided_;
  shape.graph = tools_.options.graph;
  shape.note = tools_.options.note;
  return shape;
}

std::optional<FedRequest> Session::take(Feed& feed, const Feed::Fits& fits, bool idle, const Calls& calls) {
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

std::optional<FedRequest> Session::run() {
  try {
    decode(
        tools_.models, tools_.method, shape(), [this](std::int64_t most) { return next(most); },
        [this](const Report& report) {
          after_cycle(report);
          return true;
        });
    worker_.finish();
  } catch (const std::exception& error) {
    fail(told(error));
  }
  return std::move(waiting_);
}

void Session::fail(const Error& error) {
  for (const auto& [image, work] : std::exchange(work_, {})) feed_.failed(work.fed.number, error);
}

std::vector<std::int64_t> Session::drop_unwanted() {
  std::vector<std::int64_t> dropped;
  for (const auto& [image, work] : work_) {
    if (!feed_.is_wanted(work.fed.number)) dropped.push_back(image);
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
  const Feed::Fits fit = [this](const Request& request) {
    try {
      return fits(calls_.resolve(request));
    } catch (const Error&) {
      return true;  // fails when its turn has come
    }
  };
  std::vector<Condition> conditions;
  while (static_cast<std::int64_t>(conditions.size()) < most) {
    const bool idle = work_.empty();
    if (!waiting_) waiting_ = take(feed_, fit, idle, calls_);
    if (!waiting_ || !fits(waiting_->resolved)) break;
    const std::int64_t image = begun_++;
    Work& work = work_[image] = {std::move(*waiting_)};
    waiting_.reset();
    conditions.push_back(tools_.prompts.encode(*work.fed.resolved.prompt));
    images.requests.push_back({work.fed.resolved.sampling, work.fed.resolved.seed});
  }
  // One that waits for other pictures to end lets nothing pass.
  images.open = !work_.empty() || !images.dropped.empty();
  if (conditions.empty()) return images;
  images.prompts = embed_prompts(tools_.models, conditions, guided_, tools_.method.padded);
  const double text = watch_.lap();
  for (auto work = work_.find(begun_ - static_cast<std::int64_t>(conditions.size())); work != work_.end();
       ++work) {
    work->second.text = text;
    work->second.started = decoding_;
  }
  return images;
}

void Session::after_cycle(const Report& report) {
  decoding_ += watch_.lap() - report.times.prefill;
  Report wanted{{}, report.times};  // a device reports of dropped images once more
  for (const ImageReport& image : report.images) {
    if (work_.count(image.image) != 0) wanted.images.push_back(image);
  }
  recorder_.add(wanted);
  for (const ImageReport& image : wanted.images) {
    const Drawn& drawn = recorder_.of(image.image);
    feed_.progress(work_.at(image.image).fed.number, *kind_.grid, drawn.known(),
                   static_cast<std::int64_t>(image.codes.size()));
    if (image.steps == kind_.grid->tokens()) hand_over(image.image);
  }
  watch_.lap();  // what others do with the news is not decoding
}

void Session::hand_over(std::int64_t image) {
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
  worker_.add([this, number = work.fed.number, result] {
    try {
      Stopwatch watch;
      result->image = calls_.paint(result->codes);
      result->statistics.image_ms = watch.lap();
      feed_.picture(number, std::move(*result));
    } catch (const std::exception& error) {
      feed_.failed(number, told(error));
    }
  });
}

}  // namespace lamplighter
