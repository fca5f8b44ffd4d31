#include "bundle/modules/drafter.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>

#include <utility>

#include "bundle/modules/target.h"
#include "lamplighter/error.h"

namespace lamplighter {
namespace {

const DrafterEntry& find(const Manifest& manifest, const std::string& name) {
  const auto found = manifest.drafters.find(name);
  if (found != manifest.drafters.end()) return found->second;
  throw Error(ExitCode::bundle, "bundle " + manifest.directory + " has no drafter '" + name + "'");
}

std::vector<std::string> methods_of(const Manifest& manifest, const DrafterEntry& entry) {
  if (entry.is_model()) return target_methods(*manifest.prompt);
  if (entry.kind == "medusa") return {"heads"};
  if (entry.kind == "mlp") return {"step", "logits"};
  if (entry.is_refiner()) return {"read", "step", "logits"};
  if (entry.kind == "flash" && entry.queries > 0)
    return {"embed", "forward", "heads", "compress", "forward_compressed"};
  if (entry.kind == "flash") return {"embed", "forward", "heads"};
  return {"embed", "forward", "logits"};
}

}  // namespace

Drafter::Drafter(const Manifest& manifest, const std::string& name, const Placement& placement)
    : Drafter(find(manifest, name), Module(manifest.directory, find(manifest, name).module, "drafter " + name,
                                           methods_of(manifest, find(manifest, name)), placement)) {}

Drafter::Drafter(DrafterEntry entry, Module module) : entry_(std::move(entry)), module_(std::move(module)) {}

at::Tensor Drafter::embed(const at::Tensor& ids) const {
  return module_("embed", {ids});
}

at::Tensor Drafter::forward(const at::Tensor& embeddings, const at::Tensor& features,
                            const at::Tensor& positions, const at::Tensor& tree_mask,
                            const at::Tensor& lengths, const at::Tensor& cache) const {
  if (entry_.is_model())
    return module_.call("forward", {embeddings, positions + 1, tree_mask, lengths, cache}).front();
  return module_("forward", {embeddings, features, positions, tree_mask, lengths, cache});
}

at::Tensor Drafter::compress(const at::Tensor& features, const at::Tensor& last) const {
  return module_("compress", {features, last});
}

at::Tensor Drafter::forward_compressed(const at::Tensor& embeddings, const at::Tensor& features,
                                       const at::Tensor& compressed, const at::Tensor& positions,
                                       const at::Tensor& tree_mask, const at::Tensor& lengths,
                                       const at::Tensor& cache) const {
  return module_("forward_compressed",
                 {embeddings, features, compressed, positions, tree_mask, lengths, cache});
}

at::Tensor Drafter::embed_condition(const at::Tensor& features, const at::Tensor& mask) const {
  return module_("embed_condition", {features, mask});
}

at::Tensor Drafter::embed_unconditional(const at::Tensor& mask) const {
  return module_("embed_unconditional", {mask});
}

void Drafter::read_prompt(const at::Tensor& rows, const at::Tensor& positions,
                          const at::Tensor& cache) const {
  const at::Tensor causal = at::empty({0}, positions.options());
  module_.call("forward", {rows, positions, causal, at::zeros({rows.size(0)}, positions.options()), cache});
}

at::Tensor Drafter::logits(const at::Tensor& hidden) const {
  return module_("logits", {hidden});
}

at::Tensor Drafter::heads(const at::Tensor& hidden) const {
  return module_("heads", {hidden});
}

at::Tensor Drafter::step(const at::Tensor& state, const at::Tensor& ids, std::int64_t number) const {
  return module_("step", {state, ids, at::scalar_tensor(number, at::kLong)});
}

at::Tensor Drafter::logits_after(const at::Tensor& state, std::int64_t number) const {
  return module_("logits", {state, at::scalar_tensor(number, at::kLong)});
}

at::Tensor Drafter::read(const at::Tensor& hidden, const at::Tensor& stale) const {
  return module_("read", {hidden, stale});
}

at::Tensor Drafter::refine(const at::Tensor& read, const at::Tensor& state, const at::Tensor& tokens) const {
  return module_("step", {read, state, tokens});
}

at::Tensor Drafter::make_cache(std::int64_t sequences, std::int64_t slots) const {
  const Placement& placement = module_.placement();
  return at::empty({entry_.layers, 2, sequences, entry_.kv_heads, slots, entry_.head_dim},
                   at::dtype(placement.dtype).device(placement.device));
}

}  // namespace lamplighter
