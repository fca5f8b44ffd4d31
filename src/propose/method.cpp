#include "propose/method.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/norm.h>
#include <ATen/ops/tensor.h>

#include <cmath>
#include <vector>

#include "acceptance/rules.h"
#include "base/files.h"
#include "bundle/codebook.h"
#include "propose/lookup/lookahead.h"
#include "propose/options/resolve.h"
#include "propose/registry.h"
#include "tree/tree.h"
#include "tree/window_fill.h"

namespace lamplighter {
namespace {

// int32 [codes, k] on the CPU: the named table, the bundle's, or one made from the codebook.
at::Tensor neighbours_of(const MethodOptions& method, const Manifest& manifest) {
  const std::int64_t codes = manifest.tokens.codebook_size, k = *method.k;
  if (k == 0) return at::empty({0, 0}, at::kInt);
  const NeighbourTable table = [&] {
    if (!method.neighbours.empty()) return read_neighbours(method.neighbours, codes, k, ExitCode::input);
    if (manifest.neighbours) {
      return read_neighbours(join_path(manifest.directory, *manifest.neighbours), codes, k, ExitCode::bundle);
    }
    const Codebook codebook = read_codebook(manifest);
    return nearest_neighbours(codebook.vectors, codebook.dimension, k, Metric::l2);
  }();
  const std::vector<std::int32_t> ids(table.ids.begin(), table.ids.end());
  return at::tensor(ids).view({codes, k});
}

// The vectors of the codes at unit length: fp32 [codes, width].
at::Tensor unit_vectors(const Manifest& manifest) {
  const Codebook codebook = read_codebook(manifest);
  const at::Tensor vectors = at::tensor(codebook.vectors).view({codebook.codes, codebook.dimension});
  return vectors / vectors.norm(2, 1, true).clamp_min(1e-12);
}

// What the rule takes for nodes at depth 1, 2, ..; typical and grouped: their two numbers.
std::vector<float> bounds_of(const MethodOptions& method, Rule rule) {
  if (rule == Rule::typical) return {*method.epsilon, *method.alpha};
  if (rule == Rule::grouped) return {*method.group_gap, *method.group_distance};
  if (rule == Rule::lenient) return {1 / *method.lenience};
  if (rule != Rule::cool) return method.delta ? std::vector<float>{*method.delta} : method.lambda;
  std::vector<float> weights;  // Cool-SD's annealing
  for (int depth = 1; depth < kMaxTreeNodes; ++depth)
    weights.push_back(*method.delta * std::exp(-*method.nu * static_cast<float>(depth) - *method.mu));
  return weights;
}

}  // namespace

Method make_method(const MethodOptions& resolved, const Manifest& manifest, const c10::Device& device,
                   bool greedy) {
  Method method;
  const MethodEntry& entry = find_method(resolved.method);
  if (!entry.drafts()) return method;
  method.proposer = entry.proposer;
  method.padded = entry.needs_drafter() && manifest.drafters.at(resolved.drafter).padding;
  method.rows = {resolved.ahead.value_or(0), resolved.zipar == "released", 0};
  if (!entry.judges()) {
    method.tree.reset();
    return method;
  }
  if (resolved.tree == kDynamicTree) {
    method.tree.reset();
    method.dynamic = {*resolved.dynamic_depth, *resolved.dynamic_width, *resolved.dynamic_nodes};
  } else {
    method.tree = load_tree(resolved.tree);
  }
  if (entry.proposer == &make_lookahead) {  // the chain is as long as its runs; what is drafted changes
    method.tail = method.tree->max_depth();
    method.tree.reset();
  }
  if (entry.opens_rows()) {  // every row has the chain
    method.rows.slots = method.tree->max_depth();
    method.tree.reset();
  }
  method.window.keep = resolved.tail == "keep";
  method.window.front = resolved.front.value_or(0);
  if (!resolved.init.empty()) method.window.fill = window_fill_from(resolved.init);
  if (entry.drafts_itself()) method.self = {*resolved.draft_layers, resolved.draft_window.value_or(0)};
  if (resolved.draft_length == "auto") method.confidence = *resolved.draft_confidence;
  method.conditional = resolved.draft_guidance == "conditional";
  // At temperature 0 all exact rules are one, and nothing is left of a target to draw from.
  const Rule rule = rule_from(resolved.rule);
  ops::JudgeOptions& judge = method.judge;
  judge.rule = greedy && !borrows(rule) ? Rule::exact : rule;
  judge.residual = greedy ? Residual::paper : residual_from(resolved.residual);
  judge.sampled = resolved.children == "sampled" && !greedy;
  const std::vector<float> bounds = bounds_of(resolved, rule);
  if (bounds.empty()) return method;
  judge.bounds = at::tensor(bounds).to(device);
  if (judge.rule == Rule::grouped) judge.codebook = unit_vectors(manifest).to(device);
  judge.k = *resolved.k;
  judge.neighbours = neighbours_of(resolved, manifest).to(device);
  return method;
}

}  // namespace lamplighter
