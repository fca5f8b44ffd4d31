#include "draft/adapt/sizes.h"

#include <algorithm>

namespace lamplighter {

std::optional<std::int64_t> Neighbourhood::beside(std::int64_t position, std::int64_t rows,
                                                  std::int64_t steps) const {
  const bool previewed = position < preview_positions;
  const std::int64_t first = previewed ? 0 : preview_positions, width = previewed ? preview_columns : columns;
  const std::int64_t end = previewed ? preview_positions : positions;
  const std::int64_t column = (position - first) % width + steps, found = position + rows * width + steps;
  if (column < 0 || column >= width || found < first || found >= end) return std::nullopt;
  return found;
}

DraftSize SizeRule::next(const PositionNote* notes, std::int64_t last) const {
  return last + 1 < beside_.positions ? choose(notes, last) : least_;
}

namespace {

class BisectedSizes : public SizeRule {
 public:
  using SizeRule::SizeRule;

  void learn(PositionNote* notes, std::int64_t last, std::int64_t depth,
             std::int64_t accepted) const override {
    if (depth == 0) return;
    const DraftSize size = next(notes, last);
    const bool easy = 2 * accepted > depth;
    const PositionNote note{half_way(size.depth, easy ? most_.depth : least_.depth),
                            half_way(size.width, easy ? least_.width : most_.width)};
    const std::int64_t end = std::min(beside_.positions, last + accepted + 2);
    for (std::int64_t position = last + 1; position < end; ++position) notes[position] = note;
  }

 protected:
  DraftSize choose(const PositionNote* notes, std::int64_t last) const override {
    std::optional<std::int64_t> neighbour = beside_.left(last + 1);
    if (!neighbour) neighbour = beside_.beside(last + 1, -1, 0);
    if (!neighbour || notes[*neighbour][0] == 0) return most_;
    return {notes[*neighbour][0], notes[*neighbour][1]};
  }

 private:
  // Rounded towards the goal, which is reached.
  static std::int64_t half_way(std::int64_t from, std::int64_t goal) {
    const std::int64_t step = goal - from;
    return from + step / 2 + step % 2;
  }
};

class ExpectedLengths : public SizeRule {
 public:
  using SizeRule::SizeRule;

  // The notes: 1, and how many drafts were accepted by the cycle that committed the position.
  void learn(PositionNote* notes, std::int64_t last, std::int64_t depth,
             std::int64_t accepted) const override {
    if (depth == 0) return;
    const std::int64_t end = std::min(beside_.positions, last + accepted + 2);
    for (std::int64_t position = last + 1; position < end; ++position) notes[position] = {1, accepted};
  }

 protected:
  DraftSize choose(const PositionNote* notes, std::int64_t last) const override {
    PositionNote around{};
    if (const auto left = beside_.left(last + 1)) add(around, notes[*left]);
    for (std::int64_t steps = 0; steps < kAbove; ++steps) {
      if (const auto above = beside_.beside(last + 1, -1, steps)) add(around, notes[*above]);
    }
    if (around[0] == 0) return most_;
    const auto [cycles, accepted] = around;
    const std::int64_t tokens = kCycles * (cycles + accepted);
    return {std::clamp((tokens + cycles - 1) / cycles, least_.depth, most_.depth), most_.width};
  }

 private:
  // Drafts become good because a target pass in front of their own has seen them.
  static constexpr std::int64_t kCycles = 2;
  static constexpr std::int64_t kAbove = 4;

  static void add(PositionNote& sum, const PositionNote& note) {
    sum[0] += note[0];
    sum[1] += note[1];
  }
};

}  // namespace

std::unique_ptr<SizeRule> bisected_sizes(const Neighbourhood& beside, const DraftSize& least,
                                         const DraftSize& most) {
  return std::make_unique<BisectedSizes>(beside, least, most);
}

std::unique_ptr<SizeRule> expected_lengths(const Neighbourhood& beside, const DraftSize& least,
                                           const DraftSize& most) {
  return std::make_unique<ExpectedLengths>(beside, least, most);
}

}  // namespace lamplighter
