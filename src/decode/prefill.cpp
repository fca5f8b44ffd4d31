#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>

#include "decode/draft.h"
#include "decode/row_ends.h"
#include "kernels/commit/commit.h"

namespace lamplighter {
namespace {

// Also of tokens past the end of a picture, which deep trees draft: they decide which nodes are kept.
constexpr std::int64_t kAlways = std::int64_t{1} << 40;

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

// The filter with none for greedy images: their tokens are ranked, not drawn.
Filter ranked(const Filter& filter) {
  const at::Tensor greedy = filter.temperature <= 0;
  return {filter.temperature.masked_fill(greedy, 1.0), filter.top_k.masked_fill(greedy, 0),
          filter.top_p.masked_fill(greedy, 1.0)};
}

void set_sampling(DecodeState& state, const Method& method, const std::vector<DecodeRequest>& requests,
                  const c10::Device& device) {
  state.seeds = per_image<std::int64_t>(requests, device, [](const auto& r) { return r.seed; });
  state.guidance = per_image<float>(requests, device,
                                    [](const auto& r) { return guided(r) ? r.sampling.cfg_scale : 1.0F; });
  // cfg_interval n guides the first token and the steps 0 .. n after it (LlamaGen's counting).
  state.interval = per_image<std::int64_t>(requests, device, [&](const auto& r) {
    const std::int64_t last = r.sampling.cfg_interval;
    return last < 0 || last > state.total ? kAlways : last + 2;
  });
  state.temperature =
      per_image<float>(requests, device, [](const auto& r) { return r.sampling.temperature; });
  const Filter filter{
      state.temperature,
      per_image<std::int64_t>(requests, device, [](const auto& r) { return r.sampling.top_k; }),
      per_image<float>(requests, device, [](const auto& r) { return r.sampling.top_p; })};
  // Exact rules only ask for the most probable token of a greedy image; relaxed ones weigh the others, too.
  const bool relaxed = is_relaxed(method.judge.rule);
  state.target_filter = relaxed ? ranked(filter) : filter;
  state.draft_filter = ranked(filter);
}

}  // namespace

bool is_guided(const std::vector<DecodeRequest>& requests) {
  return std::any_of(requests.begin(), requests.end(), guided);
}

bool is_partly_guided(const std::vector<DecodeRequest>& requests) {
  return std::any_of(requests.begin(), requests.end(),
                     [](const auto& r) { return guided(r) && r.sampling.cfg_interval >= 0; });
}

namespace {

// `rows` of prompt and picture fit into the caches, and a tree below the last of them.
DecodeState allocate(const Models& models, const Method& method, const RunShape& shape, std::int64_t rows,
                     const std::vector<DecodeRequest>& requests) {
  const Target& target = *models.target;
  const c10::Device device = target.placement().device;
  const Grid& grid = *shape.grid;
  const std::int64_t images = shape.images, sequences = shape.guided ? 2 * images : images;
  DecodeState state;
  state.total = grid.tokens();
  state.guided = shape.guided;
  state.partly_guided = shape.partly_guided;
  state.last_position = target.manifest().prompt->length + grid.length() - 1;
  state.first_image_id = target.manifest().tokens.first_image_id;
  state.fixed_shapes = !device.is_cpu();
  std::int64_t pass_rows = method.nodes();  // of a target pass
  if (!grid.row_end.empty()) {
    const std::int64_t row_ends = most_row_ends(method);
    state.columns = grid.columns;
    state.row_end = grid.row_end.front();
    state.row_end_bits = own_bits(method.nodes(), row_ends, device);
    pass_rows += row_ends;
  }
  set_sampling(state, method, requests, device);
  state.plan = make_plan(method, device);

  const auto integers = at::dtype(at::kLong).device(device);
  const auto zeros = [&](std::int64_t count) { return at::zeros({count}, integers); };
  state.image = at::arange(images, integers);
  state.steps = zeros(images);
  state.codes = at::zeros({images, state.total + method.depth() + 1}, integers);
  state.root = zeros(images);
  state.bad = zeros(images).to(at::kBool);
  state.report = at::zeros({images, report::width(method.depth())}, integers);
  state.lengths = zeros(sequences);
  state.position = zeros(sequences);
  state.cache = target.make_cache(sequences, rows + pass_rows);
  const std::int64_t draft_sequences = models.drafter == nullptr ? 0
                                       : method.conditional      ? images
                                                                 : sequences;
  const std::int64_t kept = method.depth() + (state.columns > 0 ? 2 : 1);
  state.fresh = zeros(draft_sequences);
  state.fresh_ids = at::zeros({draft_sequences, kept}, integers);
  state.fresh_positions = at::zeros({draft_sequences, kept}, integers);
  if (models.drafter == nullptr) return state;
  state.draft_cache = models.drafter->make_cache(draft_sequences, rows + draft_rows(method));
  state.draft_lengths = zeros(draft_sequences);
  state.fresh_features =
      at::zeros({sequences, kept, target.manifest().target.features}, state.cache.options());
  return state;
}

}  // namespace

DecodeState make_state(const Models& models, const Method& method, const Prompts& prompts,
                       const std::vector<DecodeRequest>& requests, const Grid& grid) {
  const auto images = static_cast<std::int64_t>(requests.size());
  const bool pairs = prompts.rows.size(0) == 2 * images;
  const std::int64_t rows = prompts.longest();
  return allocate(models, method, {&grid, images, rows, pairs, pairs && is_partly_guided(requests)},
                  rows + grid.length(), requests);
}

DecodeState begin(const Models& models, const Method& method, const Images& images, const RunShape& shape) {
  RunShape own = shape;
  own.images = static_cast<std::int64_t>(images.requests.size());
  DecodeState state = allocate(models, method, own, images.prompts.longest(), images.requests);
  const Verified verified = prefill(models, method, images.prompts, state);
  const Draft root = root_alone(state);
  commit(state, root, verified, accept(models, method, state, root, verified));
  return state;
}

DecodeState empty_state(const Models& models, const Method& method, const RunShape& shape) {
  const std::vector<DecodeRequest> none(static_cast<std::size_t>(shape.images));
  DecodeState state = allocate(models, method, shape, shape.prompt_rows + shape.grid->length(), none);
  state.image.fill_(-1);
  state.steps.fill_(state.total);  // complete: empty slots stand still
  return state;
}

at::Tensor prompt_positions(const Target& target, const Prompts& prompts) {
  const PromptEntry& prompt = *target.manifest().prompt;
  const at::Tensor valid = prompts.valid.to(target.placement().device);
  const std::int64_t rows = prompts.longest();
  at::Tensor positions = at::arange(rows, valid.options()).unsqueeze(0);
  if (prompt.align == "end") positions = positions + (prompt.length - valid).unsqueeze(1);
  return positions.clamp_max(prompt.length - 1).expand({valid.size(0), rows}).contiguous();
}

Verified prefill(const Models& models, const Method& method, const Prompts& prompts, DecodeState& state) {
  const Target& target = *models.target;
  const at::Tensor positions = prompt_positions(target, prompts);
  const at::Tensor valid = prompts.valid.to(positions.device());
  const Target::Output output =
      target.forward(prompts.rows.narrow(1, 0, positions.size(1)).contiguous(), positions,
                     at::empty({0}, valid.options()), at::zeros_like(valid), state.cache);
  if (models.drafter != nullptr)
    prefill_drafter(*models.drafter, method, prompts, output.features, positions, state);
  // The last row of a prompt is the root of the first tree.
  state.lengths.copy_(valid - 1);
  const at::Tensor last = state.lengths.unsqueeze(1);
  state.position.copy_(positions.gather(1, last).squeeze(1));
  return {rows_at(output.hidden, last), rows_at(output.features, last), {}};
}

}  // namespace lamplighter
