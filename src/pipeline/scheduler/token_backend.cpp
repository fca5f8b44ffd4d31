#include "pipeline/scheduler/token_backend.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/stopwatch.h"
#include "decode/kept_score.h"
#include "draft/method.h"
#include "lamplighter/error.h"
#include "measure/trial.h"

namespace lamplighter {
namespace {

// Where the requests are known, the exact shape; else one that all of them fit in.
RunShape shape_of(const Models& models, const Method& method, const RuntimeOptions& options,
                  const ResolvedRequest& first, const RunLimits& limits) {
  const Manifest& manifest = models.target->manifest();
  const bool is_known = !limits.known.empty();
  RunShape shape;
  shape.grid = first.grid;
  shape.images = limits.slots;
  shape.guided = first.is_guided();
  if (!is_known || method.padded) shape.prompt_length = manifest.prompt->length;
  std::vector<DecodeRequest> requests;
  for (const ResolvedRequest* request : limits.known) {
    shape.prompt_length = std::max(shape.prompt_length, request->prompt->length());
    shape.guided = shape.guided || request->is_guided();
    requests.push_back({request->sampling, request->seed});
  }
  shape.varying = shape.guided && (!is_known || is_varying(manifest.schedule, requests));
  shape.graph = options.graph;
  shape.record = options.record_drafts;
  shape.note = options.note;
  return shape;
}

// A drafter whose logits are NaN or infinite shows in sampled children; where the most probable ones are
// taken, it drafts nothing. Images are right without it, but the user asked for more. Some cycles have no
// room for a draft, at the ends of rows and of the image.
void require_drafts(const std::string& drafter, const RecordedImage& generated) {
  constexpr std::size_t few = 4;  // cycles
  const std::vector<std::int64_t>& drafted = generated.statistics.drafted;
  const bool none = generated.statistics.cycles.size() >= few && !drafted.empty() &&
                    std::all_of(drafted.begin(), drafted.end(), [](auto n) { return n == 0; });
  if (drafter.empty() || !(generated.bad_draft || none)) return;
  throw Error(
      ExitCode::bundle,
      "drafter " + drafter +
          ": got logits that are NaN or infinite, expected finite numbers; its weights are damaged or "
          "the dtype is too narrow for them");
}

}  // namespace

// A device runs the kernels of every thread one after the other, and may be capturing cycles: prompts are not
// read ahead there.
TokenBackend::TokenBackend(const Models& models, const PromptEncoder& prompts, const PixelDecoder* decoder,
                           const RuntimeOptions& options, const ResolvedRequest& first,
                           const RunLimits& limits)
    : models_(models),
      decoder_(decoder),
      run_method_(first.method),
      method_(run_method_->ready(first.is_greedy())),
      shape_(shape_of(models, method_, options, first, limits)),
      run_(models_, method_, shape_),
      recorder_(method_),
      reader_(prompts, models.target->placement().device.is_cpu() && at::get_num_threads() > 1) {}

std::int64_t TokenBackend::free_slots() const {
  std::int64_t free = run_.free_slots();
  for (const auto& [image, candidates] : images_) free -= static_cast<std::int64_t>(candidates.waiting());
  return std::max<std::int64_t>(free, 0);
}

void TokenBackend::begin(const std::vector<const ResolvedRequest*>& requests,
                         const std::vector<PromptPointer>& upcoming) {
  Stopwatch watch;
  for (const ResolvedRequest* request : requests)
    images_.emplace(begun_++, RegionCandidates(*request, reader_.read(request->prompt)));
  const std::int64_t first = numbers_;
  begin_candidates();
  reader_.read_ahead(upcoming);
  const double text_ms = watch.lap();
  for (std::int64_t number = first; number < numbers_; ++number)
    recorder_.of(number).statistics.text_ms = text_ms;
}

// Fills free slots with candidates that wait.
void TokenBackend::begin_candidates() {
  std::vector<Condition> conditions;
  std::int64_t free = run_.free_slots();
  for (auto& [image, candidates] : images_) {
    for (; free > 0 && candidates.waiting() > 0; --free) {
      conditions.push_back(candidates.condition());
      pending_.requests.push_back(candidates.begin(numbers_));
      recorder_.of(numbers_).keep(pending_.requests.back().kept);
      work_[numbers_++] = image;
    }
  }
  if (!conditions.empty())
    pending_.prompts = embed_prompts(models_, conditions, shape_.guided, method_.padded);
}

Step TokenBackend::step() {
  if (pending_.requests.empty()) begin_candidates();
  std::optional<Report> report = run_.step(std::exchange(pending_, {}));
  if (!report) return {};
  std::map<std::int64_t, ImageStep> steps;
  std::vector<std::int64_t> complete;
  Report active{{}, report->times};
  for (ImageReport& reported : report->images) {
    const auto found = work_.find(reported.image);
    if (found == work_.end()) continue;
    ImageStep& step = steps[found->second];
    step.image = found->second;
    if (reported.bad_target) {
      step.failure = bad_target();
      continue;
    }
    RegionCandidates& candidates = images_.at(step.image);
    const bool begins_part = reported.first && candidates.has_progress(reported.image);
    step.begins_part = begins_part && !candidates.are_compared();
    step.committed += static_cast<std::int64_t>(reported.codes.size()) + (begins_part ? 1 : 0);
    candidates.progress(reported.image, reported.steps);
    if (reported.steps == shape_.grid->tokens()) complete.push_back(reported.image);
    active.images.push_back(std::move(reported));
  }
  recorder_.add(active);
  for (const std::int64_t number : complete) complete_candidate(number);
  Step all{{}, report->times.prefill};
  for (auto& [image, step] : steps) {
    RegionCandidates& candidates = images_.at(image);
    step.tokens = candidates.tokens();
    step.committed = candidates.commit(step.committed);
    step.is_complete = candidates.is_complete();
    all.images.push_back(step);
  }
  return all;
}

void TokenBackend::complete_candidate(std::int64_t number) {
  RegionCandidates& candidates = images_.at(work_.at(number));
  RecordedImage record = recorder_.take(number);
  double score = 0;
  if (candidates.are_compared()) {
    const DecodeRequest& request = candidates.request();
    const Prompts prompts =
        embed_prompts(models_, {candidates.condition()}, is_guided(request.sampling), method_.padded);
    score = kept_log_probability(models_, prompts, request, record.codes, *shape_.grid);
  }
  candidates.complete(number, std::move(record), score);
  work_.erase(number);
}

std::vector<std::int32_t> TokenBackend::codes(std::int64_t image) {
  const RegionCandidates& candidates = images_.at(image);
  const std::int64_t number = candidates.shown();
  if (number < 0) return {};
  const RecordedImage* complete = candidates.record(number);
  return complete != nullptr ? complete->known() : recorder_.of(number).known();
}

void TokenBackend::drop(std::int64_t image) {
  for (auto candidate = work_.begin(); candidate != work_.end();) {
    if (candidate->second != image) {
      ++candidate;
      continue;
    }
    run_.drop(candidate->first);
    recorder_.take(candidate->first);
    candidate = work_.erase(candidate);
  }
  images_.erase(image);
}

CompleteImage TokenBackend::take(std::int64_t image) {
  RecordedImage generated = images_.at(image).take();
  images_.erase(image);
  require_drafts(run_method_->options.drafter, generated);
  Codes codes{shape_.grid->rows, shape_.grid->columns, std::move(generated.codes)};
  const auto own = codes.ids.begin() + static_cast<std::ptrdiff_t>(shape_.grid->preview_tokens());
  codes.preview.assign(codes.ids.begin(), own);
  codes.ids.erase(codes.ids.begin(), own);
  const Image blank{shape_.grid->width, shape_.grid->height, {}};
  return {std::move(codes), std::move(generated.statistics),
          [blank, decoder = decoder_](const Codes& complete) {
            return decoder != nullptr ? decoder->decode(complete) : blank;
          }};
}

void TokenBackend::check_decoding() const {
  if (models_.target->placement().device.is_cpu() || decoder_ == nullptr) return;
  const Grid& grid = *shape_.grid;
  decoder_->decode(
      {grid.rows, grid.columns, std::vector<std::int32_t>(static_cast<std::size_t>(grid.tokens()))});
}

Models TokenNetworks::models(const std::string& drafter) {
  if (drafter.empty()) return {&target_, nullptr};
  return {&target_, &drafters_.try_emplace(drafter, manifest_, drafter, placement_).first->second};
}

std::unique_ptr<Backend> TokenNetworks::backend(const ResolvedRequest& first, const RunLimits& limits) {
  return std::make_unique<TokenBackend>(models(first.method->options.drafter), prompts_, decoder_, options_,
                                        first, limits);
}

std::optional<TableRun> TokenNetworks::try_methods(const std::vector<ResolvedRequest>& requests) {
  Trial trial{manifest_, placement_, [this](const std::string& drafter) { return models(drafter); },
              {},        {},         requests.front().grid};
  for (const ResolvedRequest& request : requests) {
    trial.conditions.push_back(prompts_.encode(*request.prompt));
    trial.requests.push_back({request.sampling, request.seed});
  }
  return lamplighter::try_methods(trial);
}

}  // namespace lamplighter
