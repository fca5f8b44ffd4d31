#pragma once

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "bundle/manifest/guidance.h"
#include "decode/recorder.h"
#include "tests/decode/toy.h"
#include "tests/reference/chi_square.h"

// The joint distribution of all tokens of an image, exactly and as counted.
namespace lamplighter::test {

using reference::fits, reference::JointDistribution, reference::Tokens;

constexpr std::int64_t kBatch = 512;  // images sampled together

// How many images a distribution is counted on; LAMPLIGHTER_DISTRIBUTION_IMAGES asks for more than usual.
inline std::int64_t distribution_images(std::int64_t usual) {
  const char* more = std::getenv("LAMPLIGHTER_DISTRIBUTION_IMAGES");
  return std::max<std::int64_t>(usual, more == nullptr ? 0 : std::atoll(more));
}

// Guidance that falls from 2 in four or five steps.
inline GuidanceSchedule decaying() {
  GuidanceSchedule schedule;
  schedule.kind = "decay";
  schedule.floor = 1.1;
  schedule.share = 3;
  return schedule;
}

// Small enough that every image can be listed, with weights that make every earlier token matter.
inline SyntheticShape run_shape(bool row_ends = false) {
  SyntheticShape shape;
  shape.row_ends = row_ends;
  shape.vocabulary = 5;
  shape.layers = shape.heads = shape.kv_heads = 1;
  shape.prompt_length = 2;
  shape.rows = shape.columns = 2;
  shape.weight_scale = 1.5;
  return shape;
}

inline SamplingOptions run_sampling() {
  SamplingOptions sampling;
  sampling.cfg_scale = 2;
  sampling.temperature = 0.8F;
  sampling.top_k = 4;
  return sampling;
}

// The same prompt for all.
inline Prompts repeated_prompt(const Toy& toy, std::int64_t images) {
  const Prompts one = embed_prompts(toy.models(), {toy.condition(0, true)}, true);
  const at::Tensor ids = toy.prompts({0}, true).ids;
  return {one.rows.repeat({images, 1, 1}), one.valid.repeat({images}),
          ids.defined() ? at::zeros({2 * images, one.rows.size(1)}, ids.options()) : ids,
          one.drafter_rows.defined() ? one.drafter_rows.repeat({images, 1, 1}) : one.drafter_rows};
}

// Probabilities [C, V] in double of guided, scaled, filtered logits of pairs [2 C, V].
inline at::Tensor next_token(const at::Tensor& logits, const SamplingOptions& sampling, double scale) {
  const at::Tensor conditional = logits.slice(0, 0, std::nullopt, 2);
  const at::Tensor unconditional = logits.slice(0, 1, std::nullopt, 2);
  const at::Tensor scaled = (unconditional + (conditional - unconditional) * scale) / sampling.temperature;
  const at::Tensor least = std::get<0>(scaled.topk(sampling.top_k, -1)).slice(-1, sampling.top_k - 1);
  return scaled.masked_fill(scaled < least, -std::numeric_limits<double>::infinity()).softmax(-1);
}

// By teacher forcing: every image is a row of tokens that the target sees in one causal pass.
inline JointDistribution lossless_distribution(const Toy& toy, const SamplingOptions& sampling) {
  const c10::InferenceMode inference;
  const std::int64_t vocabulary = toy.target.manifest().tokens.codebook_size, total = toy.grid().tokens();
  std::int64_t images = 1;
  for (std::int64_t i = 0; i < total; ++i) images *= vocabulary;
  std::vector<at::Tensor> columns;
  for (std::int64_t i = 0, span = images; i < total; ++i) {
    span /= vocabulary;
    columns.push_back(at::arange(images, at::kLong).floor_divide(span).remainder(vocabulary));
  }
  const at::Tensor codes = at::stack(columns, 1);
  const Prompts prompts = repeated_prompt(toy, images);
  const at::Tensor fed = fed_ids(codes, toy.grid());
  const std::int64_t length = prompts.rows.size(1), all = length + fed.size(1);
  const at::Tensor rows = at::cat({prompts.rows, toy.target.embed(fed.repeat_interleave(2, 0))}, 1);
  const at::Tensor positions = at::arange(all, at::kLong).expand({2 * images, -1}).contiguous();
  at::Tensor cache = toy.target.make_cache(2 * images, all);
  const at::Tensor hidden =
      toy.target
          .forward(rows, positions, at::empty({0}, at::kLong), at::zeros({2 * images}, at::kLong), cache)
          .hidden;
  const at::Tensor logits =
      toy.target.logits(hidden.narrow(1, length - 1, fed.size(1)).contiguous()).to(at::kDouble);
  const std::vector<float> scales =
      guidance_scales(toy.target.manifest().schedule, toy.grid(), sampling, total);
  at::Tensor probability = at::ones({images}, at::kDouble);
  for (std::int64_t i = 0; i < total; ++i) {
    const std::int64_t before = i + (toy.grid().row_end.empty() ? 0 : i / toy.grid().columns);  // rows fed
    const at::Tensor next =
        next_token(logits.select(1, before), sampling, scales[static_cast<std::size_t>(i)]);
    probability = probability * next.gather(1, codes.narrow(1, i, 1)).squeeze(1);
  }
  JointDistribution distribution;
  for (std::int64_t image = 0; image < images; ++image) {
    const std::int64_t* row = codes.const_data_ptr<std::int64_t>() + image * total;
    const double chance = probability.const_data_ptr<double>()[image];
    if (chance > 0) distribution[Tokens(row, row + total)] = chance;
  }
  return distribution;
}

// A way to run the decode loop on a batch of requests.
using Loop = std::function<at::Tensor(const Prompts&, const std::vector<DecodeRequest>&)>;

// How often each image comes out.
inline JointDistribution counted_distribution(const Toy& toy, const SamplingOptions& sampling,
                                              std::int64_t images, const Loop& loop) {
  const Prompts prompts = repeated_prompt(toy, kBatch);
  std::vector<DecodeRequest> requests(kBatch, DecodeRequest{sampling, 0});
  std::uint64_t seed = 0;
  JointDistribution counts;
  for (std::int64_t done = 0; done < images; done += kBatch) {
    for (DecodeRequest& request : requests) request.seed = seed++;
    const at::Tensor codes = loop(prompts, requests).contiguous();
    const std::int64_t total = codes.size(1);
    for (std::int64_t image = 0; image < kBatch; ++image) {
      const std::int64_t* row = codes.const_data_ptr<std::int64_t>() + image * total;
      counts[Tokens(row, row + total)] += 1;
    }
  }
  return counts;
}

// The same of decode(), and how many drafted tokens it accepted.
struct SampledDistribution {
  JointDistribution counts;
  std::int64_t accepted = 0;
};
inline SampledDistribution sampled_distribution(const Toy& toy, const Models& models, const Method& method,
                                                const SamplingOptions& sampling, std::int64_t images) {
  SampledDistribution sampled;
  sampled.counts =
      counted_distribution(toy, sampling, images, [&](const Prompts& prompts, const auto& requests) {
        return decode(models, method, prompts, requests, toy.grid(), [&](const Report& report) {
          for (const ImageReport& image : report.images) sampled.accepted += image.accepted;
          return true;
        });
      });
  return sampled;
}

// The same of one run in which the next image takes the slot of one that is complete.
inline JointDistribution distribution_of_slots(const Toy& toy, const Method& method,
                                               const SamplingOptions& sampling, std::int64_t images,
                                               std::int64_t slots, const Models& models) {
  const Grid grid = toy.grid();
  RunShape shape;
  shape.grid = &grid;
  shape.images = slots;
  shape.prompt_length = toy.target.manifest().prompt->length;
  shape.guided = true;
  shape.varying = guidance_varies(toy.target.manifest().schedule, sampling);
  std::int64_t begun = 0;
  const auto next = [&](std::int64_t most) {
    PendingImages some;
    for (; begun < images && static_cast<std::int64_t>(some.requests.size()) < most; ++begun)
      some.requests.push_back({sampling, static_cast<std::uint64_t>(begun)});
    if (!some.requests.empty())
      some.prompts = repeated_prompt(toy, static_cast<std::int64_t>(some.requests.size()));
    return some;
  };
  Recorder recorder(method);
  decode(models, method, shape, next, [&](const Report& report) {
    recorder.add(report);
    return true;
  });
  JointDistribution counts;
  for (std::int64_t image = 0; image < images; ++image) {
    const RecordedImage sampled = recorder.take(image);
    counts[Tokens(sampled.codes.begin(), sampled.codes.end())] += 1;
  }
  return counts;
}
inline JointDistribution distribution_of_slots(const Toy& toy, const Method& method,
                                               const SamplingOptions& sampling, std::int64_t images,
                                               std::int64_t slots) {
  return distribution_of_slots(toy, method, sampling, images, slots, toy.models());
}

}  // namespace lamplighter::test
