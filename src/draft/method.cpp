#include "draft/method.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/norm.h>
#include <ATen/ops/tensor.h>

#include <vector>

#include "acceptance/rules.h"
#include "base/files.h"
#include "bundle/codebook.h"
#include "draft/options/resolve.h"
#include "draft/registry.h"
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

}  // namespace

Method make_method(const MethodOptions& resolved, const Manifest& manifest, const c10::Device& device,
                   bool greedy) {
  Method method;
  const MethodEntry& entry = find_method(resolved.method);
  if (!entry.drafts()) return method;
  method.draft_method = entry.draft_method;
  method.options = resolved;
  method.padded = entry.needs_drafter() && manifest.drafters.at(resolved.drafter).padding;
  if (!entry.verifies()) {
    method.tree.reset();
    return method;
  }
  if (resolved.tree == kDynamicTree) {
    method.tree.reset();
  } else {
    method.tree = load_tree(resolved.tree);
  }
  if (entry.tree == TreeKind::runs) {  // the chain is as long as its runs; what is drafted changes
    method.tail = method.tree->max_depth();
    method.tree.reset();
  }
  if (entry.is_row_parallel()) {  // every row has the chain
    method.row_window = method.tree->max_depth();
    method.tree.reset();
  }
  method.window.keep = resolved.tail == "keep";
  method.window.front = resolved.front.value_or(0);
  method.window.make_front = entry.front;
  if (!resolved.init.empty()) method.window.fill = window_fill_from(resolved.init);
  if (resolved.draft_length == "auto") method.confidence = *resolved.draft_confidence;
  method.adapts = resolved.adapt == "neighbours";
  method.conditional = resolved.draft_guidance == "conditional";
  // At temperature 0 all lossless rules are the same, and a rejection leaves nothing to sample from.
  const Rule rule = rule_from(resolved.rule);
  ops::VerifyOptions& verify = method.verify;
  verify.rule = greedy && !traits_of(rule).borrows() ? Rule::exact : rule;
  verify.residual = greedy || resolved.residual.empty() ? Residual::paper : residual_from(resolved.residual);
  verify.sampled = resolved.children == "sampled" && !greedy;
  if (const OfficialVariant* variant = entry.variant(verify.rule))
    method.draft_method = variant->draft_method;
  const RuleTraits& traits = traits_of(verify.rule);
  if (traits.set != nullptr) traits.set(resolved, verify.numbers);
  if (traits.reads_codebook()) verify.codebook = unit_vectors(manifest).to(device);
  if (!traits.borrows()) return method;
  verify.k = *resolved.k;
  verify.neighbours = neighbours_of(resolved, manifest).to(device);
  return method;
}

}  // namespace lamplighter
