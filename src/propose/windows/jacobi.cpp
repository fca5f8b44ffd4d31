#include "propose/windows/jacobi.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "propose/drafters/eagle.h"
#include "propose/drafters/flash.h"

namespace lamplighter {
namespace {

// The places that have more than one candidate, the first ones, and how many.
struct Fan {
  std::int64_t places = 0, candidates = 1;
};

Fan fan_of(const Tree& tree) {
  Fan fan{0, std::max<std::int64_t>(1, tree.max_children())};
  for (std::int64_t node = 0; node < tree.size(); ++node) {
    if (tree.child_count(node) > 1) fan.places = std::max(fan.places, tree.depth[node] + 1);
  }
  return fan;
}

// Where each node of the tree is found in the window: its place, and its number among the candidates.
struct Spread {
  std::vector<std::int64_t> place, candidate, draft_row;  // [N]; the root's are 0

  // Children come from the row of their place; behind the last place there is a row, or none.
  Spread(const Tree& tree, bool row_behind) : place(tree.depth), candidate(tree.rank), draft_row(tree.depth) {
    for (std::int64_t node = 0; node < tree.size(); ++node) {
      const auto n = static_cast<std::size_t>(node);
      if (tree.child_count(node) == 0 && !(row_behind && place[n] == tree.max_depth())) draft_row[n] = -1;
      place[n] = std::max<std::int64_t>(0, place[n] - 1);
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

// L = slots of the window, places behind the root; its tree is a chain of their first candidates, with more
// of them at the first places of a fan.
class Jacobi : public Proposer {
 public:
  Jacobi(const Method& method, const Models& models)
      : options_(method.window),
        sampled_(method.judge.sampled),
        official_(method.judge.rule == Rule::official_pac),
        shape_(shape_of(*method.tree)),
        fan_(fan_of(*method.tree)),
        front_tree_(preset_tree("chain-" + std::to_string(method.window.front))),
        topology_(topology(*method.tree, models.target->placement().device)),
        vocabulary_(models.target->manifest().target.head),
        codes_(std::min(vocabulary_, models.target->manifest().tokens.codebook_size)) {
    if (options_.front > 0) {
      const bool flash = models.drafter->entry().kind == "flash";
      front_ = (flash ? make_flash_tree : make_eagle_static)(method, models, front_tree_);
    }
    if (fan_.places == 0 && !official_) return;
    const Tree& tree = *method.tree;
    const c10::Device device = topology_.parents.device();
    const std::vector<std::int64_t> chain = first_children(tree);
    const Spread spread(tree, official_);
    stale_ = stale_rows(tree, chain, device);
    chain_ = integers(chain, device);
    place_ = integers(spread.place, device).slice(0, 1);
    candidate_ = integers(spread.candidate, device).slice(0, 1);
    topology_.draft_rows = integers(spread.draft_row, device).unsqueeze(0);
  }

  TreeShape shape() const override { return shape_; }

  void allocate(const RunShape& shape, std::int64_t rows) override {
    if (front_) front_->allocate(shape, rows);
    const c10::Device device = topology_.parents.device();
    const std::int64_t slots = shape_.depth;
    columns_ = shape.grid->columns;
    slots_ = at::arange(slots, at::dtype(at::kLong).device(device));
    tokens_ = at::full({shape.images, slots}, -1, slots_.options());
    likeliest_ = at::zeros({shape.images}, slots_.options());
    rows_ = at::zeros({shape.images, slots, vocabulary_}, at::dtype(at::kFloat).device(device));
    if (!official_) return;
    others_ = at::full({shape.images, slots, fan_.candidates - 1}, -1, slots_.options());
    even_ = at::zeros({1, 1, vocabulary_}, rows_.options());
    even_.narrow(2, 0, codes_).fill_(1 / static_cast<double>(codes_));
  }

  void begin(const Prompts& prompts, const Prefilled& prefilled, const RunState& run) override {
    if (front_) front_->begin(prompts, prefilled, run);
  }

  Draft propose(const RunState& run) override {
    const at::Tensor& left = options_.fill == WindowFill::sample ? likeliest_ : run.root;
    const at::Tensor uniforms = ops::uniforms(run.seeds, run.steps, ops::Purpose::fill, slots_.size(0));
    tokens_.copy_(ops::fill_window(tokens_, rows_,
                                   {uniforms, run.steps, left, run.codes, columns_, codes_, options_.fill}));
    if (front_) take(front_->propose(run));
    const at::Tensor rows = official_ ? at::cat({rows_, even_.expand({rows_.size(0), -1, -1})}, 1) : rows_;
    return {topology_, at::cat({run.root.unsqueeze(1), spread(run)}, 1), rows};
  }

  void learn(const Draft& draft, const Scores& scores, const Judged& judged, const KeptRows& kept,
             const RunState& run) override {
    if (front_) front_->learn(draft, scores, judged, kept, run);
    if (options_.fill == WindowFill::sample) likeliest_.copy_(judged.final.argmax(1));
    if (draft.tokens.size(1) == 1) {  // the root that a prompt ends with: nothing is known behind it
      tokens_.fill_(-1);
      if (official_) others_.fill_(-1);
      return;
    }
    Window next = official_ ? released(draft, judged, run) : renewed(draft, judged, run);
    if (run.columns > 0) keep_unscored(draft, judged, next);
    tokens_.copy_(next.tokens);
    rows_.copy_(next.rows);
    if (official_) others_.copy_(next.others);
  }

  std::vector<PerImage> per_image() override {
    std::vector<PerImage> all{{&tokens_}, {&rows_}, {&likeliest_}};
    if (official_) all.push_back({&others_});
    if (!front_) return all;
    for (const PerImage& of_drafter : front_->per_image()) all.push_back(of_drafter);
    return all;
  }
  void skip(std::int64_t rows) override {
    if (front_) front_->skip(rows);
  }

 private:
  // The window as a chain of L + 1 nodes, and what the target says of each.
  struct Chain {
    ops::Distributions target;  // [I, L + 1, V]
    at::Tensor tokens, parents, draft_rows;
  };

  // What outlives a cycle: tokens_, rows_ and others_.
  struct Window {
    at::Tensor tokens, rows, others;
  };

  // What a drafter says of the first places stands there in the place of what the window held.
  void take(const Draft& front) {
    tokens_.narrow(1, 0, options_.front).copy_(front.tokens.slice(1, 1));
    rows_.narrow(1, 0, options_.front).copy_(ops::probabilities(front.distributions));
  }

  // Tokens int64 [I, N - 1] of the nodes behind the root. A place's other candidates are drawn from its row
  // without the first, whose law that row is; so together they are drawn without replacement.
  at::Tensor spread(const RunState& run) const {
    if (fan_.places == 0) return tokens_;
    const at::Tensor first = tokens_.narrow(1, 0, fan_.places).unsqueeze(2);
    const at::Tensor rows = rows_.narrow(1, 0, fan_.places).scatter(2, first, 0);
    at::Tensor others = std::get<0>(ops::draw_children(
        rows, {run.seeds, run.steps, slots_.narrow(0, 0, fan_.places), fan_.candidates - 1, sampled_}));
    if (official_) {
      const at::Tensor known = others_.narrow(1, 0, fan_.places);
      others = at::where(known >= 0, known, others);
    }
    const at::Tensor behind = tokens_.narrow(1, fan_.places, tokens_.size(1) - fan_.places);
    const at::Tensor all = at::cat({first, others}, 2).flatten(1);
    const std::int64_t last = fan_.places * fan_.candidates;
    const at::Tensor index =
        at::where(place_ < fan_.places, place_ * fan_.candidates + candidate_, place_ + (last - fan_.places));
    return at::cat({all, behind}, 1).index_select(1, index);
  }

  // int64 [I, L + 1]: the nodes that tell of the places behind the walk's end.
  at::Tensor stale_nodes(const Judged& judged) const {
    return stale_.index_select(0, judged.path.gather(1, judged.count.unsqueeze(1)).squeeze(1));
  }

  // int64 [I, L + 1]
  at::Tensor first_tokens(const Draft& draft) const {
    return chain_.defined() ? draft.tokens.index_select(1, chain_) : draft.tokens;
  }

  // A chain is its own; of a fan, what the walk left behind it (SJD-PAC).
  Chain first_candidates(const Draft& draft, const Judged& judged) const {
    if (fan_.places == 0) return {judged.target, draft.tokens, draft.parents, draft.draft_rows};
    const at::Tensor nodes = at::arange(shape_.depth + 1, slots_.options()).unsqueeze(0);
    const at::Tensor drafted = at::where(nodes < shape_.depth, nodes, -1);
    return {rows_at(judged.target, stale_nodes(judged)), first_tokens(draft), nodes - 1, drafted};
  }

  Window renewed(const Draft& draft, const Judged& judged, const RunState& run) const {
    const at::Tensor uniforms =
        ops::uniforms(run.seeds, run.steps, ops::Purpose::window, 2 * (shape_.depth + 1));
    const Chain chain = first_candidates(draft, judged);
    auto [tokens, rows] = ops::renew_window({chain.target, rows_, chain.tokens, chain.parents,
                                             chain.draft_rows, uniforms, run.temperature, shape_.depth},
                                            judged.count, options_.keep);
    return {tokens, rows, {}};
  }

  // As SJD-PAC's program does it: drafts stay by the tests that judged them, and candidates are drawn where
  // these are. Nothing is taken from the row of the last place.
  Window released(const Draft& draft, const Judged& judged, const RunState& run) const {
    const std::int64_t slots = shape_.depth, candidates = fan_.candidates;
    const at::Tensor tests = ops::uniforms(run.seeds, run.steps, ops::Purpose::accept, draft.tokens.size(1));
    const at::Tensor draws = ops::uniforms(run.seeds, run.steps, ops::Purpose::window, slots * candidates);
    const at::Tensor depth = judged.count.unsqueeze(1) + 1 + slots_;
    const at::Tensor node = stale_nodes(judged).gather(1, depth.clamp_max(slots));
    const auto [tokens, rows, left] =
        ops::renew_fan({judged.target, draft.distributions, draft.tokens, draft.parents, draft.draft_rows,
                        tests, run.temperature, slots},
                       at::where(depth < slots, node, -1), draws.view({-1, slots, candidates}));
    return {tokens.select(2, 0), rows, tokens.slice(2, 1)};
  }

  // Drafts that lay behind the end of a row were not scored: they stay as they are.
  void keep_unscored(const Draft& draft, const Judged& judged, Window& next) const {
    const at::Tensor place = judged.count.unsqueeze(1) + 1 + slots_;  // [I, L], of the slots before the shift
    const at::Tensor old = place.clamp_max(slots_.size(0) - 1);
    const at::Tensor unscored =
        (place < slots_.size(0)) & (first_tokens(draft).slice(1, 1).gather(1, old) < 0);
    next.tokens = at::where(unscored, tokens_.gather(1, old), next.tokens);
    const auto stay = [&](const at::Tensor& before, const at::Tensor& after) {
      return at::where(unscored.unsqueeze(2), before.gather(1, old.unsqueeze(2).expand_as(before)), after);
    };
    next.rows = stay(rows_, next.rows);
    if (official_) next.others = stay(others_, next.others);
  }

  WindowOptions options_;
  bool sampled_;
  bool official_;  // the rule is that of SJD-PAC's program
  TreeShape shape_;
  Fan fan_;
  Tree front_tree_;
  std::unique_ptr<Proposer> front_;  // null: no drafter
  Topology topology_;
  std::int64_t vocabulary_, codes_;  // V of the head, and the ids of it that are codes
  // Of a fan. int64 [N, L + 1], [L + 1], and [N - 1] each.
  at::Tensor stale_, chain_, place_, candidate_;
  std::int64_t columns_ = 0;  // codes of a row of the picture
  at::Tensor slots_;          // int64 [L]: 0, 1, ..
  // The window: codes int64 [I, L], -1: nothing is known, and what they were drawn from, fp32 [I, L, V].
  at::Tensor tokens_, rows_;
  at::Tensor likeliest_;  // int64 [I], at the place of the root
  // Of official_: the places' other candidates, int64 [I, L, K - 1], -1: to be drawn from their row; and the
  // row of a new place, fp32 [1, 1, V].
  at::Tensor others_, even_;
};

}  // namespace

std::unique_ptr<Proposer> make_jacobi(const Method& method, const Models& models) {
  return std::make_unique<Jacobi>(method, models);
}

}  // namespace lamplighter
