#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "bundle/draft_kinds.h"
#include "bundle/modules/module.h"

namespace lamplighter {

// A network that drafts: its archive, its manifest entry and its cache. Each draft method has a typed caller
// of the archive beside it (src/draft).
class DraftModel {
 public:
  // Loads the bundle's drafter of this name. Throws Error(ExitCode::bundle).
  DraftModel(const Manifest& manifest, const std::string& name, const Placement& placement);
  DraftModel(DraftModelEntry entry, Module module);

  const DraftModelEntry& entry() const { return entry_; }
  const DraftKindEntry& kind() const { return draft_kind(entry_); }
  const Module& module() const { return module_; }

  // Throws Error(ExitCode::bundle) where the archive has fewer heads than are needed, which its entry
  // promises.
  void require_heads(std::int64_t got, std::int64_t needed) const;
  // [layers, 2, sequences, kv_heads, slots, head_dim].
  at::Tensor make_cache(std::int64_t sequences, std::int64_t slots) const;

 private:
  DraftModelEntry entry_;
  Module module_;
};

}  // namespace lamplighter
