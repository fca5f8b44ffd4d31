#include "decode/state.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "acceptance/rules.h"
#include "bundle/manifest/guidance.h"
#include "decode/row_ends.h"
#include "kernels/commit/commit.h"

namespace lamplighter {
namespace {

// One value per image as a tensor of the wanted type.
template <typename T, typename Get>
at::Tensor each(const std::vector<DecodeRequest>& requests, const c10::Device& device, Get get) {
  std::vector<T> values;
  values.reserve(requests.size());
  for (const DecodeRequest& request : requests) values.push_back(static_cast<T>(get(request)));
  return at::tensor(values).to(device);
}

bool guided(const DecodeRequest& request) {
  return is_guided(request.sampling);
}

// The filter with none for greedy images: their tokens are ranked, not sampled.
Filter ranked(const Filter& filter) {
  const at::Tensor greedy = filter.temperature <= 0;
  return {filter.temperature.masked_fill(greedy, 1.0), filter.top_k.masked_fill(greedy, 0),
          filter.top_p.masked_fill(greedy, 1.0)};
}

// Scales of `count` tokens of every image, or of one for all. Tokens past the end of an image, which deep
// trees draft, have some too: they decide which nodes are kept.
at::Tensor scales(const GuidanceSchedule& schedule, const Grid& grid,
                  const std::vector<DecodeRequest>& requests, std::int64_t count, const c10::Device& device) {
  const at::Tensor all = at::empty({static_cast<std::int64_t>(requests.size()), count}, at::kFloat);
  auto* row = all.mutable_data_ptr<float>();
  for (const DecodeRequest& request : requests) {
    const std::vector<float> own = guidance_scales(schedule, grid, request.sampling, count);
    row = std::copy(own.begin(), own.end(), row);
  }
  return all.to(device);
}

void set_sampling(RunState& run, bool borrows, const std::vector<DecodeRequest>& requests,
                  const c10::Device& device) {
  run.seeds = each<std::int64_t>(requests, device, [](const auto& r) { return r.seed; });
  run.temperature = each<float>(requests, device, [](const auto& r) { return r.sampling.temperature; });
  const Filter filter{run.temperature,
                      each<std::int64_t>(requests, device, [](const auto& r) { return r.sampling.top_k; }),
                      each<float>(requests, device, [](const auto& r) { return r.sampling.top_p; })};
  // Rules that borrow weigh all tokens of a greedy image; the others only ask for the most probable one.
  run.target_filter = borrows ? ranked(filter) : filter;
  run.draft_filter = ranked(filter);
}

// What commits advance.
void set_counters(ops::Counters& counters, const RunShape& shape, std::int64_t depth,
                  const c10::Device& device) {
  const auto integers = at::dtype(at::kLong).device(device);
  const auto zeros = [&](std::int64_t count) { return at::zeros({count}, integers); };
  counters.image = at::arange(shape.images, integers);
  counters.steps = zeros(shape.images);
  counters.codes = at::zeros({shape.images, counters.total + depth + 1}, integers);
  counters.root = zeros(shape.images);
  counters.bad = zeros(shape.images).to(at::kBool);
  counters.report = at::zeros({shape.images, report::width(depth)}, integers);
  counters.lengths = zeros(shape.sequences());
  counters.position = zeros(shape.sequences());
  counters.root_ids = zeros(shape.sequences()).unsqueeze(1);
  counters.root_positions = zeros(shape.sequences()).unsqueeze(1);
}

// Kept codes count as committed.
void set_kept(ops::Counters& counters, const std::vector<DecodeRequest>& requests) {
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const std::vector<std::int32_t>& kept = requests[i].kept;
    if (kept.empty()) continue;
    const auto image = static_cast<std::int64_t>(i), count = static_cast<std::int64_t>(kept.size());
    counters.codes[image].narrow(0, 0, count).copy_(at::tensor(kept));
    counters.steps[image].fill_(count);
    counters.root[image].fill_(kept.back());
  }
}

}  // namespace

bool is_guided(const std::vector<DecodeRequest>& requests) {
  return std::any_of(requests.begin(), requests.end(), guided);
}

bool is_varying(const GuidanceSchedule& schedule, const std::vector<DecodeRequest>& requests) {
  return std::any_of(requests.begin(), requests.end(),
                     [&](const auto& r) { return guidance_varies(schedule, r.sampling); });
}

DecodeState make_state(const Models& models, const Method& method, const RunShape& shape, std::int64_t slots,
                       const std::vector<DecodeRequest>& requests) {
  const Target& target = *models.target;
  const Manifest& manifest = target.manifest();
  const c10::Device device = target.placement().device;
  const Grid& grid = *shape.grid;
  DecodeState state;
  state.draft_method = method.draft_method(method, models);
  state.draft_method->allocate(shape, slots);
  const TreeShape tree = state.tree = state.draft_method->shape();
  state.run.counters.total = grid.tokens();
  state.run.counters.last_position = manifest.prompt->length + grid.length() - 1;
  state.run.counters.first_image_id = manifest.tokens.first_image_id;
  state.run.sampling_order = manifest.sampling_order;
  state.run.guided = shape.guided;
  state.run.fixed_shapes = !device.is_cpu();
  std::int64_t pass_rows = tree.nodes;
  if (!grid.row_end.empty()) {
    state.run.columns = grid.columns;
    state.run.counters.row_end = grid.row_end.front();
    state.row_end_bits = own_bits(tree.nodes, tree.widest, device);
    pass_rows += tree.widest;
  }
  set_sampling(state.run, traits_of(method.verify.rule).borrows(), requests, device);
  state.run.guidance = scales(manifest.schedule, grid, requests,
                              shape.varying ? state.run.counters.total + tree.depth + 1 : 1, device);
  set_counters(state.run.counters, shape, tree.depth, device);
  set_kept(state.run.counters, requests);
  state.run.cache =
      target.make_cache(shape.sequences(), slots + pass_rows + tree.zero_rows + tree.recompute_rows);
  state.last_token = topology(preset_tree("chain-0"), device);
  return state;
}

DecodeState make_state(const Models& models, const Method& method, const Prompts& prompts,
                       const std::vector<DecodeRequest>& requests, const Grid& grid) {
  const auto images = static_cast<std::int64_t>(requests.size());
  const bool pairs = prompts.rows.size(0) == 2 * images;
  const std::int64_t length = prompts.longest();
  return make_state(
      models, method,
      {&grid, images, length, pairs, pairs && is_varying(models.target->manifest().schedule, requests)},
      length + grid.length(), requests);
}

DecodeState empty_state(const Models& models, const Method& method, const RunShape& shape) {
  const std::vector<DecodeRequest> none(static_cast<std::size_t>(shape.images));
  DecodeState state = make_state(models, method, shape, shape.prompt_length + shape.grid->length(), none);
  state.run.counters.image.fill_(-1);
  state.run.counters.steps.fill_(state.run.counters.total);  // complete: an empty slot stands still
  return state;
}

Draft last_token(const DecodeState& state) {
  return {state.last_token, state.run.counters.root.unsqueeze(1)};
}

std::vector<PerImage> per_image(DecodeState& state) {
  std::vector<PerImage> all = state.draft_method->per_image();
  all.push_back({&state.run.cache, 2, 4});
  for (Filter* filter : {&state.run.target_filter, &state.run.draft_filter}) {
    for (at::Tensor* values : {&filter->temperature, &filter->top_k, &filter->top_p}) all.push_back({values});
  }
  for (at::Tensor* values :
       {&state.run.counters.image, &state.run.seeds, &state.run.guidance, &state.run.temperature,
        &state.run.counters.steps, &state.run.counters.codes, &state.run.counters.root,
        &state.run.counters.bad, &state.run.counters.report, &state.run.counters.lengths,
        &state.run.counters.position, &state.run.counters.root_ids, &state.run.counters.root_positions})
    all.push_back({values});
  return all;
}

std::vector<at::Tensor> snapshot(DecodeState& state) {
  std::vector<at::Tensor> values;
  for (const PerImage& part : per_image(state)) {
    if (part.cache_slots < 0) values.push_back(part.tensor->clone());
  }
  return values;
}

void restore(DecodeState& state, const std::vector<at::Tensor>& from) {
  auto value = from.begin();
  for (const PerImage& part : per_image(state)) {
    if (part.cache_slots < 0) part.tensor->copy_(*value++);
  }
}

}  // namespace lamplighter
