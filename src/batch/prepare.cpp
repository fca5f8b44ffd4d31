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

// A request's error, with the place of its caption. The number of captions that the bundle does not
// understand.
std::size_t check_requests(const Plan& plan, const Manifest& manifest) {
  // Prompts of tokens have a longest length; texts are cut at theirs.
  std::optional<PromptTokenizer> tokenizer;
  if (manifest.prompt->kind == "tokens") tokenizer.emplace(manifest);
  std::optional<Vocabulary> vocabulary;
  if (manifest.prompt->vocabulary) vocabulary.emplace(*manifest.prompt->vocabulary);
  std::size_t misunderstood = 0;
  for (const PlannedPicture& picture : plan.pictures) {
    if (picture.record.repeat != 0) continue;
    try {
      TextToImage::check(manifest, picture.request);
      if (tokenizer)
        tokenizer->encode(picture.request,
                          find_grid(manifest, picture.request.width, picture.request.height));
    } catch (const Error& error) {
      throw Error(ExitCode::input, picture.where + ": " + error.what());
    }
    misunderstood += vocabulary && !vocabulary->read(picture.request.prompt).whole();
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
  batch.plan = make_plan(options.plan);
  const Manifest manifest = read_manifest(options.bundle);
  require_drawable(manifest);
  batch.misunderstood = check_requests(batch.plan, manifest);
  resolve_method(options.method, manifest);
  const PictureSet present = present_pictures(options.folder, options.verify);
  for (std::size_t i = 0; i < batch.plan.pictures.size(); ++i) {
    const Record& record = batch.plan.pictures[i].record;
    if (!is_shared && !options.shard.draws(record.index)) continue;
    ++batch.part;
    if (present.count({record.index, record.repeat}) == 0) batch.missing.push_back(i);
  }
  return batch;
}

}  // namespace lamplighter
