#include "bundle/draft_kinds.h"

#include <algorithm>
#include <iterator>

namespace lamplighter {

const DraftKindEntry& draft_kind(DraftKind kind) {
  return *std::find_if(std::begin(kDraftKinds), std::end(kDraftKinds),
                       [kind](const DraftKindEntry& entry) { return entry.kind == kind; });
}

const DraftKindEntry& draft_kind(const DraftModelEntry& drafter) {
  const auto found = std::find_if(std::begin(kDraftKinds), std::end(kDraftKinds),
                                  [&](const DraftKindEntry& entry) { return drafter.kind == entry.name; });
  return found == std::end(kDraftKinds) ? draft_kind(DraftKind::other) : *found;
}

}  // namespace lamplighter
