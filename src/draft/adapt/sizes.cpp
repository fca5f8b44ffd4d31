#include "draft/adapt/sizes.h"

#include <algorithm>

namespace lamplighter {

std::optional<std::int64_t> Neighbourhood::beside(std::int64_t place, std::int64_t rows,
                                                  std::int64_t steps) const {
  const bool previewed = place < preview_places;
  const std::int64_t first = previewed ? 0 : preview_places, width = previewed ? preview_columns : columns;
  const std::int64_t end = previewed ? preview_places : places;
  const std::int64_t column = (place - first) % width + steps, found = place + rows * width + steps;
  if (column < 0 || column >= width || found < first || found >= end) return std::nullopt;
  return found;
}

DraftSize SizeRule::next(const PlaceNote* notes, std::int64_t last) const {
  return last + 1 < beside_.places ? choose(notes, last) : least_;
}

namespace {

class BisectedSizes : public SizeRule {
 public:
  using SizeRule::SizeRule;

  void learn(PlaceNote* notes, std::int64_t last, std::int64_t depth, std::int64_t accepted) const override {
    if (depth == 0) return;
    const DraftSize size = next(notes, last);
    const bool easy = 2 * accepted > depth;
    const PlaceNote note{half_way(size.depth, easy ? most_.depth : least_.depth),
                         half_way(size.width, easy ? least_.width : most_.width)};
    const std::int64_t end = std::min(beside_.places, last + accepted + 2);
    for (std::int64_t place = last + 1; place < end; ++place) notes[place] = note;
  }

 protected:
  DraftSize choose(const PlaceNote* notes, std::int64_t last) const override {
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

  // The notes: whether a draft was verified here, and whether it was accepted.
  void learn(PlaceNote* notes, std::int64_t last, std::int64_t depth, std::int64_t accepted) const override {
    const std::int64_t end = std::min(beside_.places, last + 1 + std::min(depth, accepted + 1));
    for (std::int64_t place = last + 1; place < end; ++place) notes[place] = {1, place <= last + accepted};
  }

 protected:
  DraftSize choose(const PlaceNote* notes, std::int64_t last) const override {
    const PlaceNote in_front = noted_in_front(notes, last);
    DraftSize size = least_;
    double chance = 1;
    for (std::int64_t depth = 1; depth <= most_.depth && last + depth < beside_.places; ++depth) {
      PlaceNote around = in_front;
      for (std::int64_t steps = -1; steps <= 1; ++steps) {
        if (const auto above = beside_.beside(last + depth, -1, steps)) add(around, notes[*above]);
      }
      chance *= static_cast<double>(around[1] + 1) / static_cast<double>(around[0] + 1);
      if (chance < kWorthDrafting) break;
      size.depth = std::max(size.depth, depth);
    }
    return size;
  }

 private:
  static constexpr double kWorthDrafting = 0.2;
  static constexpr std::int64_t kInFront = 4;

  static void add(PlaceNote& sum, const PlaceNote& note) {
    sum[0] += note[0];
    sum[1] += note[1];
  }

  // The last places of the row, up to `last`.
  PlaceNote noted_in_front(const PlaceNote* notes, std::int64_t last) const {
    PlaceNote sum{};
    for (std::int64_t steps = 1; steps <= kInFront; ++steps) {
      if (const auto place = beside_.beside(last + 1, 0, -steps)) add(sum, notes[*place]);
    }
    return sum;
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
