#include "bundle/modules/draft_model.h"

#include <ATen/ops/empty.h>

#include <utility>
#include <vector>

#include "base/format.h"
#include "bundle/modules/target.h"
#include "lamplighter/error.h"

namespace lamplighter {
namespace {

const DraftModelEntry& find(const Manifest& manifest, const std::string& name) {
  const auto found = manifest.drafters.find(name);
  if (found != manifest.drafters.end()) return found->second;
  throw Error(ExitCode::bundle, "bundle " + manifest.directory + " has no drafter '" + name + "'");
}

std::vector<std::string> methods_of(const Manifest& manifest, const DraftModelEntry& entry) {
  const DraftKindEntry& kind = draft_kind(entry);
  if (kind.is_target()) return target_methods(*manifest.prompt);
  std::vector<std::string> methods;
  for (const char* method : kind.methods) {
    if (method != nullptr) methods.emplace_back(method);
  }
  if (entry.queries > 0) methods.insert(methods.end(), {"compress", "forward_compressed"});
  return methods;
}

}  // namespace

DraftModel::DraftModel(const Manifest& manifest, const std::string& name, const Placement& placement)
    : DraftModel(find(manifest, name),
                 Module(manifest.directory, find(manifest, name).module, "drafter " + name,
                        methods_of(manifest, find(manifest, name)), placement)) {}

DraftModel::DraftModel(DraftModelEntry entry, Module module)
    : entry_(std::move(entry)), module_(std::move(module)) {}

DraftModel DraftModel::for_text(const Manifest& images) const {
  DraftModel drafter = *this;
  drafter.gap_ = {images.tokens.first_image_id, images.tokens.codebook_size};
  drafter.text_ids_ = images.tokens.vocabulary - images.tokens.codebook_size;
  return drafter;
}

at::Tensor DraftModel::all_logits(const at::Tensor& rows) const {
  if (gap_.codes > 0 && rows.size(-1) != text_ids_)
    throw Error(ExitCode::bundle, module_.role() + ": got logits of " + std::to_string(rows.size(-1)) +
                                      " ids, expected " + std::to_string(text_ids_) +
                                      ", all but the codes of images; attach a drafter of texts");
  return gap_.filled(rows);
}

void DraftModel::require_heads(std::int64_t got, std::int64_t needed) const {
  if (got >= needed) return;
  throw Error(ExitCode::bundle, module_.role() + ": got " + counted(static_cast<std::uint64_t>(got), "head") +
                                    ", the manifest says heads " + std::to_string(entry_.heads));
}

at::Tensor DraftModel::make_cache(std::int64_t sequences, std::int64_t slots) const {
  const Placement& placement = module_.placement();
  return at::empty({entry_.layers, 2, sequences, entry_.kv_heads, slots, entry_.head_dim},
                   at::dtype(placement.dtype).device(placement.device));
}

}  // namespace lamplighter
