#include "pipeline/scheduler/token_backend.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <utility>

#include "base/stopwatch.h"
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

void TokenBackend::begin(const std::vector<const ResolvedRequest*>& requests,
                         const std::vector<PromptPointer>& upcoming) {
  Stopwatch watch;
  std::vector<Condition> conditions;
  for (const ResolvedRequest* request : requests) {
    conditions.push_back(reader_.read(request->prompt));
    pending_.requests.push_back({request->sampling, request->seed, request->kept});
  }
  pending_.prompts = embed_prompts(models_, conditions, shape_.guided, method_.padded);
  reader_.read_ahead(upcoming);
  const double text_ms = watch.lap();
  for (std::size_t i = 0; i < requests.size(); ++i) {
    RecordedImage& recorded = recorder_.of(begun_);
    recorded.keep(requests[i]->kept);
    recorded.statistics.text_ms = text_ms;
    active_.insert(begun_++);
  }
}

Step TokenBackend::step() {
  std::optional<Report> report = run_.step(std::exchange(pending_, {}));
  if (!report) return {};
  Step step{{}, report->times.prefill};
  Report active{{}, report->times};
  for (ImageReport& image : report->images) {
    // A device reports once more of images that are complete or dropped.
    if (active_.count(image.image) == 0) continue;
    const bool is_complete = image.steps == shape_.grid->tokens();
    step.images.push_back(
        {image.image, image.steps, static_cast<std::int64_t>(image.codes.size()), is_complete});
    if (image.bad_target) {
      step.images.back().failure = bad_target();
      continue;
    }
    if (is_complete) active_.erase(image.image);
    active.images.push_back(std::move(image));
  }
  recorder_.add(active);
  return step;
}

void TokenBackend::drop(std::int64_t image) {
  run_.drop(image);
  recorder_.take(image);
  active_.erase(image);
}

CompleteImage TokenBackend::take(std::int64_t image) {
  RecordedImage generated = recorder_.take(image);
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
