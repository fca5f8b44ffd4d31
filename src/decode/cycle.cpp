#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "decode/decode.h"
#include "kernels/ops.h"

namespace lamplighter {
namespace {

// One value per image as a tensor of the wanted type.
template <typename T, typename Get>
at::Tensor per_image(const std::vector<DecodeRequest>& requests, const c10::Device& device, Get get) {
  std::vector<T> values;
  values.reserve(requests.size());
  for (const DecodeRequest& request : requests) values.push_back(static_cast<T>(get(request)));
  return at::tensor(values).to(device);
}

bool guided(const DecodeRequest& request) {
  return request.sampling.cfg_scale > 1.0F;
}

}  // namespace

bool is_guided(const std::vector<DecodeRequest>& requests) {
  return std::any_of(requests.begin(), requests.end(), guided);
}

DecodeState make_state(const Target& target, const Prompts& prompts,
                       const std::vector<DecodeRequest>& requests, const Grid& grid) {
  const c10::Device device = target.placement().device;
  const std::int64_t images = static_cast<std::int64_t>(requests.size());
  const std::int64_t sequences = prompts.rows.size(0);
  DecodeState state;
  state.total = grid.tokens();
  state.guided = sequences == 2 * images;
  state.seeds = per_image<std::int64_t>(requests, device, [](const auto& r) { return r.seed; });
  state.guidance = per_image<float>(requests, device,
                                    [](const auto& r) { return guided(r) ? r.sampling.cfg_scale : 1.0F; });
  // cfg_interval n guides the first token and the steps 0 .. n after it (LlamaGen's counting).
  state.interval = per_image<std::int64_t>(requests, device, [&](const auto& r) {
    return r.sampling.cfg_interval < 0 ? state.total : std::min(r.sampling.cfg_interval, state.total) + 2;
  });
  state.partly_guided = state.guided && std::any_of(requests.begin(), requests.end(), [](const auto& r) {
                          return guided(r) && r.sampling.cfg_interval >= 0;
                        });
  state.temperature =
      per_image<float>(requests, device, [](const auto& r) { return r.sampling.temperature; });
  state.top_k = per_image<std::int64_t>(requests, device, [](const auto& r) { return r.sampling.top_k; });
  state.top_p = per_image<float>(requests, device, [](const auto& r) { return r.sampling.top_p; });
  const std::int64_t prompt_rows = prompts.valid.max().item<std::int64_t>();
  state.cache = target.make_cache(sequences, prompt_rows + state.total);
  const auto integers = at::dtype(at::kLong).device(device);
  state.lengths = at::zeros({sequences}, integers);
  state.steps = at::zeros({images}, integers);
  state.codes = at::zeros({images, state.total}, integers);
  return state;
}

at::Tensor prefill(const Target& target, const Prompts& prompts, DecodeState& state) {
  const c10::Device device = target.placement().device;
  const PromptEntry& prompt = *target.manifest().prompt;
  const std::int64_t rows = prompts.valid.max().item<std::int64_t>();
  const at::Tensor valid = prompts.valid.to(device);
  at::Tensor positions = at::arange(rows, valid.options()).unsqueeze(0);
  // Rows past a prompt's end are padding; their positions only have to exist.
  if (prompt.align == "end") positions = positions + (prompt.length - valid).unsqueeze(1);
  positions = positions.clamp_max(prompt.length - 1).expand({valid.size(0), rows}).contiguous();
  const Target::Output output = target.forward(prompts.rows.narrow(1, 0, rows).contiguous(), positions,
                                               at::empty({0}, valid.options()), state.lengths, state.cache);
  state.lengths = valid.clone();
  state.positions =
      (prompt.align == "end" ? at::full_like(valid, prompt.length - 1) : valid - 1).unsqueeze(1);
  ++state.target_passes;
  return output.hidden;
}

at::Tensor last_rows(const at::Tensor& hidden, const Prompts& prompts) {
  const at::Tensor last = (prompts.valid.to(hidden.device()) - 1).view({-1, 1, 1});
  return hidden.gather(1, last.expand({-1, 1, hidden.size(2)}));
}

at::Tensor verify(const Target& target, DecodeState& state) {
  at::Tensor ids =
      state.codes.select(1, state.committed - 1).unsqueeze(1) + target.manifest().tokens.first_image_id;
  if (state.guided) ids = ids.repeat_interleave(2, 0);
  const Target::Output output = target.forward(target.embed(ids), state.positions,
                                               at::empty({0}, ids.options()), state.lengths, state.cache);
  state.lengths += 1;
  ++state.target_passes;
  return output.hidden;
}

at::Tensor accept(const Target& target, const DecodeState& state, const at::Tensor& hidden) {
  const Manifest& manifest = target.manifest();
  at::Tensor guidance = state.guidance;
  if (state.partly_guided)
    guidance = at::where(state.steps < state.interval, guidance, at::ones_like(guidance));
  const at::Tensor probabilities = ops::guide_and_filter(target.logits(hidden), guidance, state.temperature,
                                                         state.top_k, state.top_p, manifest.sampling_order);
  const at::Tensor uniforms = ops::uniforms(state.seeds, state.steps, ops::Purpose::token, 1);
  return ops::draw(probabilities, uniforms, state.temperature);
}

void commit(DecodeState& state, const at::Tensor& codes) {
  state.codes.narrow(1, state.committed, 1).copy_(codes);
  state.positions += 1;
  state.steps += 1;
  ++state.committed;
}

}  // namespace lamplighter
