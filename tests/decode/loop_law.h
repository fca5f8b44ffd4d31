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

// The joint law of all tokens of a picture, exactly and as counted.
namespace lamplighter::test {

using reference::fits, reference::Law, reference::Tokens;

constexpr std::int64_t kBatch = 512;  // pictures drawn together

// How many pictures a law is counted on; LAMPLIGHTER_LAW_PICTURES asks for more than usual.
inline std::int64_t law_pictures(std::int64_t usual) {
  const char* more = std::getenv("LAMPLIGHTER_LAW_PICTURES");
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

// Small enough that every picture can be listed, with weights that make every earlier token matter.
inline SyntheticShape law_shape(bool row_ends = false) {
  SyntheticShape shape;
  shape.row_ends = row_ends;
  shape.vocabulary = 5;
  shape.layers = shape.heads = shape.kv_heads = 1;
  shape.prompt_length = 2;
  shape.rows = shape.columns = 2;
  shape.weight_scale = 1.5;
  return shape;
}

inline SamplingOptions law_sampling() {
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

// By teacher forcing: every picture is a row of tokens that the target sees in one causal pass.
inline Law exact_law(const Toy& toy, const SamplingOptions& sampling) {
  const c10::InferenceMode inference;
  const std::int64_t vocabulary = toy.target.manifest().tokens.codebook_size, total = toy.grid().tokens();
  std::int64_t pictures = 1;
  for (std::int64_t i = 0; i < total; ++i) pictures *= vocabulary;
  std::vector<at::Tensor> columns;
  for (std::int64_t i = 0, span = pictures; i < total; ++i) {
    span /= vocabulary;
    columns.push_back(at::arange(pictures, at::kLong).floor_divide(span).remainder(vocabulary));
  }
  const at::Tensor codes = at::stack(columns, 1);
  const Prompts prompts = repeated_prompt(toy, pictures);
  const at::Tensor fed = fed_ids(codes, toy.grid());
  const std::int64_t length = prompts.rows.size(1), all = length + fed.size(1);
  const at::Tensor rows = at::cat({prompts.rows, toy.target.embed(fed.repeat_interleave(2, 0))}, 1);
  const at::Tensor positions = at::arange(all, at::kLong).expand({2 * pictures, -1}).contiguous();
  at::Tensor cache = toy.target.make_cache(2 * pictures, all);
  const at::Tensor hidden =
      toy.target
          .forward(rows, positions, at::empty({0}, at::kLong), at::zeros({2 * pictures}, at::kLong), cache)
          .hidden;
  const at::Tensor logits =
      toy.target.logits(hidden.narrow(1, length - 1, fed.size(1)).contiguous()).to(at::kDouble);
  const std::vector<float> scales =
      guidance_scales(toy.target.manifest().schedule, toy.grid(), sampling, total);
  at::Tensor probability = at::ones({pictures}, at::kDouble);
  for (std::int64_t i = 0; i < total; ++i) {
    const std::int64_t before = i + (toy.grid().row_end.empty() ? 0 : i / toy.grid().columns);  // rows fed
    const at::Tensor next =
        next_token(logits.select(1, before), sampling, scales[static_cast<std::size_t>(i)]);
    probability = probability * next.gather(1, codes.narrow(1, i, 1)).squeeze(1);
  }
  Law law;
  for (std::int64_t picture = 0; picture < pictures; ++picture) {
    const std::int64_t* row = codes.const_data_ptr<std::int64_t>() + picture * total;
    const double chance = probability.const_data_ptr<double>()[picture];
    if (chance > 0) law[Tokens(row, row + total)] = chance;
  }
  return law;
}

// A way to run the decode loop on a batch of requests.
using Loop = std::function<at::Tensor(const Prompts&, const std::vector<DecodeRequest>&)>;

// How often each picture comes out.
inline Law counted_law(const Toy& toy, const SamplingOptions& sampling, std::int64_t images,
                       const Loop& loop) {
  const Prompts prompts = repeated_prompt(toy, kBatch);
  std::vector<DecodeRequest> requests(kBatch, DecodeRequest{sampling, 0});
  std::uint64_t seed = 0;
  Law counts;
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
struct DrawnLaw {
  Law counts;
  std::int64_t accepted = 0;
};
inline DrawnLaw drawn_law(const Toy& toy, const Models& models, const Method& method,
                          const SamplingOptions& sampling, std::int64_t pictures) {
  DrawnLaw drawn;
  drawn.counts = counted_law(toy, sampling, pictures, [&](const Prompts& prompts, const auto& requests) {
    return decode(models, method, prompts, requests, toy.grid(), [&](const Report& report) {
      for (const ImageReport& image : report.images) drawn.accepted += image.accepted;
      return true;
    });
  });
  return drawn;
}

// The same of one run in which the next picture takes the slot of one that is complete.
inline Law law_of_slots(const Toy& toy, const Method& method, const SamplingOptions& sampling,
                        std::int64_t images, std::int64_t slots, const Models& models) {
  const Grid grid = toy.grid();
  RunShape shape;
  shape.grid = &grid;
  shape.images = slots;
  shape.prompt_rows = toy.target.manifest().prompt->length;
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
  Law counts;
  for (std::int64_t image = 0; image < images; ++image) {
    const Drawn drawn = recorder.take(image);
    counts[Tokens(drawn.codes.begin(), drawn.codes.end())] += 1;
  }
  return counts;
}
inline Law law_of_slots(const Toy& toy, const Method& method, const SamplingOptions& sampling,
                        std::int64_t images, std::int64_t slots) {
  return law_of_slots(toy, method, sampling, images, slots, toy.models());
}

}  // namespace lamplighter::test
