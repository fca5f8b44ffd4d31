#include "draft/windows/jacobi.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/full.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

namespace lamplighter {
namespace {

// Where each node of the tree is found in the window: its position, and its number among the candidates.
struct WindowNodes {
  std::vector<std::int64_t> position, candidate, draft_row;  // [N]; the root's are 0

  // Children come from the row of their position; behind the last one there is a row, or none.
  WindowNodes(const Tree& tree, bool row_behind)
      : position(tree.depth), candidate(tree.rank), draft_row(tree.depth) {
    for (std::int64_t node = 0; node < tree.size(); ++node) {
      const auto n = static_cast<std::size_t>(node);
      if (tree.child_count(node) == 0 && !(row_behind && tree.depth[n] == tree.max_depth()))
        draft_row[n] = -1;
      position[n] = std::max<std::int64_t>(0, tree.depth[n] - 1);
    }
  }
};

// [N, L + 1]: the node whose row says what stands behind depth d after the walk ended at node n: below n by
// first children, and where these end, on the chain of first candidates. Depths above n: the root.
at::Tensor stale_rows(const Tree& tree, const std::vector<std::int64_t>& chain, const c10::Device& device) {
  const std::size_t depths = chain.size();
  std::vector<std::int64_t> rows(static_cast<std::size_t>(tree.size()) * depths, 0);
  for (std::size_t end = 0; end < tree.depth.size(); ++end) {
    auto node = static_cast<std::int64_t>(end);
    for (auto depth = static_cast<std::size_t>(tree.depth[end]); depth < depths; ++depth) {
      rows[end * depths + depth] = node >= 0 ? node : chain[depth];
      const bool goes_on = node >= 0 && tree.child_count(node) > 0;
      node = goes_on ? tree.child_begin[static_cast<std::size_t>(node)] : -1;
    }
  }
  return integers(rows, device).view({tree.size(), -1});
}

}  // namespace

// L = positions of the window behind the last token.
Jacobi::Jacobi(const Method& method, const Models& models) : Jacobi(method, models, false) {}

Jacobi::Jacobi(const Method& method, const Models& models, bool row_behind)
    : shape_(shape_of(*method.tree)),
      multi_{0, std::max<std::int64_t>(1, method.tree->max_children())},
      vocabulary_(models.target->manifest().target.head),
      codes_(std::min(vocabulary_, models.target->manifest().tokens.codebook_size)),
      target_(*models.target),
      options_(method.window),
      sampled_(method.verify.sampled),
      in_steps_(WindowSteps::serve(method)),
      front_tree_(preset_tree("chain-" + std::to_string(method.window.front))),
      adaptation_(adapted_window(method)),
      topology_(topology(*method.tree, models.target->placement().device)) {
  if (options_.front > 0) front_ = options_.make_front(method, models, front_tree_);
  index_nodes(*method.tree, row_behind);
}

void Jacobi::index_nodes(const Tree& tree, bool row_behind) {
  for (std::int64_t node = 0; node < tree.size(); ++node) {
    if (tree.child_count(node) > 1) multi_.positions = std::max(multi_.positions, tree.depth[node] + 1);
  }
  const c10::Device device = topology_.parents.device();
  const std::vector<std::int64_t> chain = first_children(tree);
  const WindowNodes nodes(tree, row_behind);
  stale_ = stale_rows(tree, chain, device);
  chain_ = integers(chain, device);
  position_ = integers(nodes.position, device).slice(0, 1);
  candidate_ = integers(nodes.candidate, device).slice(0, 1);
  topology_.draft_rows = integers(nodes.draft_row, device).unsqueeze(0);
}

void Jacobi::allocate(const RunShape& shape, std::int64_t slots) {
  if (front_) front_->allocate(shape, slots);
  if (adaptation_) adaptation_->allocate(shape);
  if (shape.whole_cycles && in_steps_) {
    steps_.emplace(options_, target_, shape, shape_.nodes, codes_);
    return;
  }
  const c10::Device device = topology_.parents.device();
  const std::int64_t length = shape_.depth;
  columns_ = shape.grid->columns;
  offsets_ = at::arange(length, at::dtype(at::kLong).device(device));
  window_tokens_ = at::full({shape.images, length}, -1, offsets_.options());
  likeliest_ = at::zeros({shape.images}, offsets_.options());
  window_probs_ = at::zeros({shape.images, length, vocabulary_}, at::dtype(at::kFloat).device(device));
}

void Jacobi::begin(const Prompts& prompts, const Prefilled& prefilled, const RunState& run) {
  if (front_) front_->begin(prompts, prefilled, run);
}

void Jacobi::begun(const RunState& run) {
  if (steps_) steps_->begin(run);
}

ops::WindowRows Jacobi::finish_cycle(const at::Tensor& logits, const Draft& draft, const Scores& scores,
                                     RunState& run) {
  return steps_->finish(logits, draft, scores, run);
}

Draft Jacobi::draft(const RunState& run) {
  if (steps_) return steps_->draft(topology_);
  const ops::Counters& counters = run.counters;
  const at::Tensor& left = options_.fill == WindowFill::sample ? likeliest_ : counters.root;
  const at::Tensor uniforms = ops::uniforms(run.seeds, counters.steps, ops::Purpose::fill, shape_.depth);
  window_tokens_.copy_(
      ops::fill_window(window_tokens_, window_probs_,
                       {uniforms, counters.steps, left, counters.codes, columns_, codes_, options_.fill}));
  if (front_) take_front(front_->draft(run));
  Draft draft{topology_, at::cat({counters.root.unsqueeze(1), drafted(run)}, 1), window_probs_};
  if (adaptation_) shorten(batch_sizes(adaptation_->next(run), draft.tokens.device()), draft);
  return draft;
}

void Jacobi::update(const Draft& draft, const Scores& scores, const Verified& verified, const RunState& run) {
  if (steps_) return;
  if (front_) front_->update(draft, scores, verified, run);
  if (adaptation_) adaptation_->learn(draft, verified, run);
  if (options_.fill == WindowFill::sample) likeliest_.copy_(verified.walk.final.argmax(1));
  if (draft.tokens.size(1) == 1) return clear();  // the first token of an image
  std::vector<at::Tensor> next = renewed(draft, verified, run);
  if (run.columns > 0 || adaptation_) keep_unscored(draft, verified, next);
  auto value = next.begin();
  for (at::Tensor* part : window()) part->copy_(*value++);
}

std::vector<PerImage> Jacobi::per_image() {
  if (steps_) return steps_->per_image();
  std::vector<PerImage> all;
  for (at::Tensor* part : window()) all.push_back({part});
  all.push_back({&likeliest_});
  if (adaptation_) all.push_back(adaptation_->per_image());
  if (!front_) return all;
  for (const PerImage& part : front_->per_image()) all.push_back(part);
  return all;
}

void Jacobi::advance_for_benchmark(std::int64_t slots) {
  if (front_) front_->advance_for_benchmark(slots);
}

// What the drafter says of the first positions replaces what the window held there.
void Jacobi::take_front(const Draft& front) {
  window_tokens_.narrow(1, 0, options_.front).copy_(front.tokens.slice(1, 1));
  window_probs_.narrow(1, 0, options_.front).copy_(ops::probabilities(front.distributions));
}

at::Tensor Jacobi::other_candidates(const RunState& run) const {
  const at::Tensor first = window_tokens_.narrow(1, 0, multi_.positions).unsqueeze(2);
  const at::Tensor rows = window_probs_.narrow(1, 0, multi_.positions).scatter(2, first, 0);
  return std::get<0>(ops::sample_children(
      rows,
      {run.seeds, run.counters.steps, offsets_.narrow(0, 0, multi_.positions), multi_.count - 1, sampled_}));
}

// Tokens int64 [I, N - 1] of the nodes behind the root.
at::Tensor Jacobi::drafted(const RunState& run) const {
  const auto& [positions, count] = multi_;
  if (positions == 0) return window_tokens_;
  const at::Tensor first = window_tokens_.narrow(1, 0, positions).unsqueeze(2);
  const at::Tensor all = at::cat({first, other_candidates(run)}, 2).flatten(1);
  const at::Tensor behind = window_tokens_.narrow(1, positions, window_tokens_.size(1) - positions);
  const at::Tensor index = at::where(position_ < positions, position_ * count + candidate_,
                                     position_ + (positions * count - positions));
  return at::cat({all, behind}, 1).index_select(1, index);
}

at::Tensor Jacobi::stale_nodes(const Verified& verified) const {
  return stale_.index_select(0, verified.walk.path.gather(1, verified.walk.count.unsqueeze(1)).squeeze(1));
}

// int64 [I, L + 1]
at::Tensor Jacobi::first_tokens(const Draft& draft) const {
  return multi_.positions > 0 ? draft.tokens.index_select(1, chain_) : draft.tokens;
}

// A chain is its own; of several candidates, what the walk left behind it (SJD-PAC).
Jacobi::Chain Jacobi::first_candidates(const Draft& draft, const Verified& verified) const {
  if (multi_.positions == 0)
    return {verified.target, draft.tokens, draft.nodes.parents, draft.nodes.draft_rows};
  const at::Tensor nodes = at::arange(shape_.depth + 1, offsets_.options()).unsqueeze(0);
  const at::Tensor draft_rows = at::where(nodes < shape_.depth, nodes, -1);
  return {rows_at(verified.target, stale_nodes(verified)), first_tokens(draft), nodes - 1, draft_rows};
}

std::vector<at::Tensor> Jacobi::renewed(const Draft& draft, const Verified& verified,
                                        const RunState& run) const {
  const Chain chain = first_candidates(draft, verified);
  const std::int64_t nodes = chain.tokens.size(1), unscored = shape_.depth + 1 - nodes;
  at::Tensor uniforms =
      ops::uniforms(run.seeds, run.counters.steps, ops::Purpose::window, 2 * (shape_.depth + 1));
  // A node has the same numbers however long the chain is.
  if (unscored > 0)
    uniforms = at::cat({uniforms.narrow(1, 0, nodes), uniforms.narrow(1, shape_.depth + 1, nodes)}, 1);
  auto [tokens, rows] = ops::renew_window({chain.target, window_probs_, chain.tokens, chain.parents,
                                           chain.draft_rows, uniforms, run.temperature, nodes - 1},
                                          verified.walk.count, options_.keep);
  if (unscored == 0) return {std::move(tokens), std::move(rows)};
  return {at::constant_pad_nd(tokens, {0, unscored}, -1), at::constant_pad_nd(rows, {0, 0, 0, unscored})};
}

// Drafts behind the end of an image row, or of a window that was shortened, were not scored: they stay as
// they are.
void Jacobi::keep_unscored(const Draft& draft, const Verified& verified, std::vector<at::Tensor>& next) {
  const at::Tensor position = verified.walk.count.unsqueeze(1) + 1 + offsets_;  // [I, L], before the shift
  const at::Tensor old = position.clamp_max(shape_.depth - 1);
  const at::Tensor tokens = first_tokens(draft);
  const at::Tensor scored = at::constant_pad_nd(tokens, {0, shape_.depth + 1 - tokens.size(1)}, -1);
  const at::Tensor unscored = (position < shape_.depth) & (scored.slice(1, 1).gather(1, old) < 0);
  auto value = next.begin();
  for (const at::Tensor* before : window()) {
    const auto wide = [&](const at::Tensor& all) { return before->dim() > 2 ? all.unsqueeze(2) : all; };
    const at::Tensor stayed = before->gather(1, wide(old).expand_as(*before));
    *value = at::where(wide(unscored), stayed, *value);
    ++value;
  }
  if (!adaptation_) return;
  // Behind a shortened window there is no draft that could stay, and no row either.
  const at::Tensor rowless = position.eq(shape_.depth) & (scored.slice(1, shape_.depth) < 0);
  next.front().masked_fill_(rowless, -1);
}

std::unique_ptr<DraftMethod> make_jacobi(const Method& method, const Models& models) {
  return std::make_unique<Jacobi>(method, models);
}

}  // namespace lamplighter
