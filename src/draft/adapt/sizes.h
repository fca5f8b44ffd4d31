#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

// Sizes of drafts that follow the image: where drafts beside a position were accepted, more of them are worth
// their work. A size depends on committed tokens and on earlier cycles alone, never on what is drafted with
// it, so what the acceptance rule promises holds for drafts of any size.
namespace lamplighter {

// A draft has `depth` levels below the last token; in a tree every node of a level has `width` children.
struct DraftSize {
  std::int64_t depth = 0, width = 1;
};
inline bool operator==(const DraftSize& a, const DraftSize& b) {
  return a.depth == b.depth && a.width == b.width;
}

// What lies beside a position of an image. Positions have numbers in the order in which codes are committed:
// first the positions of the preview, then the image's own, row after row.
struct Neighbourhood {
  std::int64_t positions = 0, columns = 1;
  std::int64_t preview_positions = 0, preview_columns = 1;

  // In the same grid; none beyond its sides.
  std::optional<std::int64_t> left(std::int64_t position) const { return beside(position, 0, -1); }
  std::optional<std::int64_t> beside(std::int64_t position, std::int64_t rows, std::int64_t steps) const;
};

// What a rule remembers of a position whose code is committed. Zeros: nothing is known of it.
using PositionNote = std::array<std::int64_t, 2>;

// How large the next draft of an image is. Notes are numbered by positions; `last` is the position of the
// last committed code, `Neighbourhood::positions` - 1 when the image is complete.
class SizeRule {
 public:
  SizeRule(const Neighbourhood& beside, const DraftSize& least, const DraftSize& most)
      : beside_(beside), least_(least), most_(most) {}
  virtual ~SizeRule() = default;
  SizeRule(const SizeRule&) = delete;
  SizeRule& operator=(const SizeRule&) = delete;

  // Of a draft behind position `last`; the smallest one where the image is complete.
  DraftSize next(const PositionNote* notes, std::int64_t last) const;
  // Notes what became of a draft `depth` levels deep, of which `accepted` were accepted. A draft of no depth
  // says nothing.
  virtual void learn(PositionNote* notes, std::int64_t last, std::int64_t depth,
                     std::int64_t accepted) const = 0;

 protected:
  virtual DraftSize choose(const PositionNote* notes, std::int64_t last) const = 0;

  Neighbourhood beside_;
  DraftSize least_, most_;
};

// Trees by bisection, after ADT-Tree (Lei et al. 2025, arXiv 2512.21857). A tree begins with the size of its
// left neighbour, in a row's first position with the size of its neighbour above. A cycle that accepts more
// than half of the depth moves the depth half-way to the largest and the width half-way to the smallest, so
// that easy positions get deep trees; another cycle does the opposite, and hard positions get wide ones. The
// abstract names the horizontal neighbour and the bisection, and the public code has no part of the rule; one
// half as the bound, and halves of what is left to either end, are ours.
std::unique_ptr<SizeRule> bisected_sizes(const Neighbourhood& beside, const DraftSize& least,
                                         const DraftSize& most);

// Windows, chains whose drafts outlive the cycle, by expectation. A cycle is expected to commit as many
// tokens as the cycles did, on average, that committed the position to the left and the four positions above
// the chain's first ones. The window holds the tokens of two cycles: drafts become good by the passes that
// they go through before their turn, so a window for one cycle would shrink more and more. Where no neighbour
// is known it is as long as it may be.
std::unique_ptr<SizeRule> expected_lengths(const Neighbourhood& beside, const DraftSize& least,
                                           const DraftSize& most);

}  // namespace lamplighter
