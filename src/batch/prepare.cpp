#include <optional>

#include "batch/folder.h"
#include "batch/run.h"
#include "decode/prompt_tokenizer.h"
#include "lamplighter/error.h"
#include "lamplighter/method.h"
#include "lamplighter/pipeline.h"
#include "text/vocabulary.h"

namespace lamplighter {
namespace {

// Checks all requests and names the caption in errors. Returns the number of captions that the bundle does
// not fully understand.
std::size_t check_requests(const Plan& plan, const Manifest& manifest) {
  // Prompts of token ids have a maximal length; longer texts are cut.
  std::optional<PromptTokenizer> tokenizer;
  if (manifest.prompt->kind == "tokens") tokenizer.emplace(manifest);
  std::optional<Vocabulary> vocabulary;
  if (manifest.prompt->vocabulary) vocabulary.emplace(*manifest.prompt->vocabulary);
  std::size_t misunderstood = 0;
  for (const PlannedImage& image : plan.images) {
    if (image.record.repeat != 0) continue;
    try {
      TextToImage::check(manifest, image.request);
      if (tokenizer)
        tokenizer->encode(image.request, find_grid(manifest, image.request.width, image.request.height));
    } catch (const Error& error) {
      throw Error(ExitCode::input, image.where + ": " + error.what());
    }
    misunderstood += vocabulary && !vocabulary->read(image.request.prompt).whole();
  }
  return misunderstood;
}

}  // namespace

BatchPlan plan_batch(const BatchOptions& options) {
  const bool is_shared = !options.queue.address.empty();
  if (is_shared) check_queue(options.queue);
  if (options.retries < 0)
    throw Error(ExitCode::usage, "retry: got " + std::to_string(options.retries) + ", expected 0 or more");
  BatchPlan batch;
  PlanOptions wanted = options.plan;
  wanted.is_further_seed = has_other_seed(options.folder, wanted.seed);
  batch.plan = make_plan(wanted);
  const Manifest manifest = read_manifest(options.bundle);
  require_generatable(manifest);
  batch.misunderstood = check_requests(batch.plan, manifest);
  resolve_method(options.method, manifest);
  const ImageSet present = present_images(options.folder, batch.plan, options.verify);
  for (std::size_t i = 0; i < batch.plan.images.size(); ++i) {
    const Record& record = batch.plan.images[i].record;
    if (!is_shared && !options.shard.generates(record.index)) continue;
    ++batch.part;
    if (present.count({record.index, record.repeat}) == 0) batch.missing.push_back(i);
  }
  return batch;
}

}  // namespace lamplighter
