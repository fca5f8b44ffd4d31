#include "kernels/ops.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include <type_traits>
#include <utility>

#include "kernels/anchor.h"
#include "kernels/sampling/distribution_args.h"

extern "C" int lamplighter_ops_anchor() {
  return 1;
}

namespace lamplighter::ops {
namespace {

// The name of an operator as a type, for call().
#define OPERATOR(name) ([] { return "lamplighter::" #name; })

// How the dispatcher takes an argument: tensors that are not const are changed, numbers are copied.
template <class Argument, class Value = std::decay_t<Argument>>
using Passed = std::conditional_t<
    std::is_same_v<Argument, at::Tensor&>, at::Tensor&,
    std::conditional_t<std::is_arithmetic_v<Value> || std::is_same_v<Value, c10::string_view>, Value,
                       const Value&>>;

// Calls an operator on the device of its arguments. Their types give its signature, which the dispatcher
// checks against the schema at the first call.
template <class Result, class Name, class... Arguments>
Result call(Name name, Arguments&&... arguments) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow(name(), "")
                             .template typed<Result(Passed<Arguments>...)>();
  return op.call(std::forward<Arguments>(arguments)...);
}

using Two = std::tuple<at::Tensor, at::Tensor>;
using Three = std::tuple<at::Tensor, at::Tensor, at::Tensor>;
using Five = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

}  // namespace

at::Tensor uniforms(const at::Tensor& seeds, const at::Tensor& steps, Purpose purpose, std::int64_t count) {
  return call<at::Tensor>(OPERATOR(uniforms), seeds, steps, static_cast<std::int64_t>(purpose), count);
}

Distributions guide_and_filter(const at::Tensor& logits, const Filtering& filtering) {
  return {logits,
          call<at::Tensor>(OPERATOR(guide_and_filter), logits, filtering.guidance, filtering.temperature,
                           filtering.top_k, filtering.top_p, c10::string_view(filtering.order))};
}

at::Tensor largest_probabilities(const Distributions& rows) {
  if (!rows.statistics.defined()) return rows.values.amax(-1);
  return rows.statistics.select(-1, offsetof(RowStatistics, norm) / sizeof(float)).contiguous();
}

at::Tensor probabilities(const Distributions& rows) {
  if (!rows.statistics.defined()) return rows.values;
  return call<at::Tensor>(OPERATOR(probabilities), rows.values, rows.statistics);
}

Distributions cat(const std::vector<Distributions>& rows) {
  if (rows.size() == 1) return rows.front();
  std::vector<at::Tensor> values, statistics;
  for (const Distributions& part : rows) {
    values.push_back(part.values);
    if (part.statistics.defined()) statistics.push_back(part.statistics);
  }
  return {at::cat(values, 1), statistics.empty() ? at::Tensor() : at::cat(statistics, 1)};
}

at::Tensor draw(const Distributions& rows, const at::Tensor& uniforms, const at::Tensor& temperature) {
  return call<at::Tensor>(OPERATOR(draw), rows.values, uniforms, temperature, optional(rows.statistics));
}

Two draw_children(const Distributions& rows, const Draws& draws) {
  return call<Two>(OPERATOR(draw_children), rows.values, draws.seeds, draws.steps, draws.nodes, draws.count,
                   draws.sampled, optional(rows.statistics));
}

std::tuple<Distributions, at::Tensor, at::Tensor> draft_children(const at::Tensor& logits,
                                                                 const Filtering& filtering,
                                                                 const Draws& draws) {
  auto [statistics, tokens, conditional] =
      call<Three>(OPERATOR(draft_children), logits, filtering.guidance, filtering.temperature,
                  filtering.top_k, filtering.top_p, c10::string_view(filtering.order), draws.seeds,
                  draws.steps, draws.nodes, draws.count, draws.sampled);
  return {Distributions(logits, statistics), tokens, conditional};
}

void compact_cache(at::Tensor& cache, const at::Tensor& lengths, const at::Tensor& path,
                   const at::Tensor& count) {
  call<void>(OPERATOR(compact_cache), cache, lengths, path, count);
}

Two tree_rows(const at::Tensor& codes, const at::Tensor& depths, const at::Tensor& position,
              std::int64_t first_id, std::int64_t last_position) {
  return call<Two>(OPERATOR(tree_rows), codes, depths, position, first_id, last_position);
}

void commit_tokens(const CommittedTree& tree, Counters& state) {
  call<void>(OPERATOR(commit_tokens), tree.tokens, tree.depths, tree.path, tree.count, tree.token,
             tree.status, tree.kept_rows, tree.kept_count, std::as_const(state.image), state.steps,
             state.codes, state.root, state.bad, state.lengths, state.position, state.report, state.total,
             state.last_position, state.first_image_id, state.row_end);
}

void fresh_rows(const CommittedTree& tree, const at::Tensor& features, const Counters& state,
                FreshRows& fresh) {
  call<void>(OPERATOR(fresh_rows), tree.tokens, tree.path, tree.count, tree.token, tree.kept_rows,
             tree.kept_count, features, state.steps, state.position, fresh.count, fresh.ids, fresh.positions,
             fresh.features, state.total, state.last_position, state.first_image_id, state.row_end);
}

Judged judge_tree(const ScoredTree& tree, const JudgeOptions& options) {
  const auto or_empty = [&](const at::Tensor& tensor, at::ScalarType dtype) {
    return tensor.defined() ? tensor : at::empty({0}, tree.uniforms.options().dtype(dtype));
  };
  const at::Tensor& target = tree.target.values;
  const at::Tensor draft = tree.draft.defined()
                               ? tree.draft.values
                               : at::empty({tree.tokens.size(0), 0, target.size(2)}, tree.uniforms.options());
  auto [path, count, token, final, status] = call<Five>(
      OPERATOR(judge_tree), target, draft, tree.tokens, tree.parents, tree.draft_rows, tree.uniforms,
      tree.temperature, or_empty(options.neighbours, at::kInt), static_cast<std::int64_t>(options.rule),
      static_cast<std::int64_t>(options.residual), options.sampled, options.k,
      or_empty(options.bounds, at::kFloat), options.first_image_id, tree.depth, optional(options.syntax_ids),
      optional(tree.target.statistics), optional(tree.draft.statistics), optional(options.codebook));
  return {path, count, token, final, status};
}

Two renew_window(const ScoredTree& tree, const at::Tensor& count, bool keep) {
  return call<Two>(OPERATOR(renew_window), tree.target.values, tree.draft.values, tree.tokens, tree.parents,
                   tree.draft_rows, tree.uniforms, tree.temperature, count, keep,
                   optional(tree.target.statistics));
}

Three renew_fan(const ScoredTree& tree, const at::Tensor& nodes, const at::Tensor& draws) {
  return call<Three>(OPERATOR(renew_fan), tree.target.values, tree.draft.values, tree.tokens, tree.parents,
                     tree.draft_rows, tree.uniforms, tree.temperature, nodes, draws,
                     optional(tree.target.statistics));
}

at::Tensor fill_window(const at::Tensor& tokens, at::Tensor& rows, const Guesses& guesses) {
  return call<at::Tensor>(OPERATOR(fill_window), tokens, rows, guesses.uniforms, guesses.steps, guesses.left,
                          guesses.drawn, guesses.columns, guesses.codes,
                          static_cast<std::int64_t>(guesses.fill));
}

at::Tensor gaussian_log_ratio(const at::Tensor& x, const GaussianPair& pair) {
  return call<at::Tensor>(OPERATOR(gaussian_log_ratio), x, pair.target_mean, pair.target_deviation,
                          pair.draft_mean, pair.draft_deviation);
}

Two gaussian_residual(const GaussianPair& pair, const at::Tensor& log_sigma, const at::Tensor& noise,
                      const at::Tensor& uniforms) {
  return call<Two>(OPERATOR(gaussian_residual), pair.target_mean, pair.target_deviation, pair.draft_mean,
                   pair.draft_deviation, log_sigma, noise, uniforms);
}

Three expand_dynamic(const Distributions& rows, const at::Tensor& scores, std::int64_t k) {
  return call<Three>(OPERATOR(expand_dynamic), rows.values, scores, k, optional(rows.statistics));
}

Five rerank_dynamic(const at::Tensor& tokens, const at::Tensor& scores, const at::Tensor& frontiers,
                    std::int64_t nodes) {
  return call<Five>(OPERATOR(rerank_dynamic), tokens, scores, frontiers, nodes);
}

}  // namespace lamplighter::ops
