#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "bundle/draft_kinds.h"
#include "bundle/modules/code_gap.h"
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

  // The same network for answers of a target `images`, whose codes its head leaves out.
  DraftModel for_text(const Manifest& images) const;
  // What the archive's head gives [..., ids] for all codes of a run [..., V]: for texts, all ids. Throws
  // Error(ExitCode::bundle) where these are others than the manifest says.
  at::Tensor all_logits(const at::Tensor& rows) const;

  // Throws Error(ExitCode::bundle) where the archive has fewer heads than are needed, which its entry
  // promises.
  void require_heads(std::int64_t got, std::int64_t needed) const;
  // [layers, 2, sequences, kv_heads, slots, head_dim].
  at::Tensor make_cache(std::int64_t sequences, std::int64_t slots) const;

 private:
  DraftModelEntry entry_;
  Module module_;
  CodeGap gap_;
  std::int64_t text_ids_ = 0;  // of its head, with a gap
};

}  // namespace lamplighter
