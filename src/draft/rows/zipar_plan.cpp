#include "draft/rows/zipar_plan.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace lamplighter {
namespace {

// An image while its passes are planned.
class Planner {
 public:
  Planner(std::int64_t rows, std::int64_t columns, std::int64_t ahead)
      : columns_(columns),
        ahead_(std::min(ahead, columns)),
        lengths_(static_cast<std::size_t>(rows)),
        numbers_(static_cast<std::size_t>(rows * columns), -1) {
    decide(0);
  }

  ZiparPlan passes() && {
    while (plan_.order.size() < numbers_.size()) add_pass();
    return std::move(plan_);
  }

 private:
  std::int64_t rows() const { return static_cast<std::int64_t>(lengths_.size()); }
  std::int64_t length(std::int64_t row) const { return lengths_[static_cast<std::size_t>(row)]; }
  std::int64_t number(std::int64_t position) const { return numbers_[static_cast<std::size_t>(position)]; }

  void decide(std::int64_t position) {
    numbers_[static_cast<std::size_t>(position)] = static_cast<std::int64_t>(plan_.order.size());
    ++lengths_[static_cast<std::size_t>(position / columns_)];
    plan_.order.push_back(position);
  }

  bool is_open(std::int64_t row) const {
    return length(row) > 0 || length(row - 1) >= (row == 1 ? columns_ : ahead_);
  }

  // The last code of `row`, or of the one above it where it begins: until that is known, the newest code of
  // the row above that.
  ZiparPlan::Query next(std::int64_t row) const {
    const std::int64_t position = row * columns_ + length(row) - 1, above = row - 2;
    return {position,
            number(position) >= 0 ? number(position) : number(above * columns_ + length(above) - 1)};
  }

  void add_pass() {
    ZiparPlan::Pass pass;
    for (std::int64_t row = 0; row < rows() && is_open(row); ++row) {
      if (length(row) < columns_) pass.push_back(next(row));
    }
    const std::size_t deciding = pass.size();
    if (recompute_ >= 0) pass.push_back({recompute_, number(recompute_), false});
    recompute_ = -1;
    for (std::size_t i = 0; i < deciding; ++i) {
      const ZiparPlan::Query& query = pass[i];
      const bool is_placeholder = plan_.order[static_cast<std::size_t>(query.code)] != query.position;
      if (is_placeholder) placeholders_.push_back(query.position);
      decide(query.position + 1);
    }
    const auto known = std::find_if(placeholders_.begin(), placeholders_.end(),
                                    [&](std::int64_t position) { return number(position) >= 0; });
    if (known != placeholders_.end()) {
      recompute_ = *known;
      placeholders_.erase(known);
    }
    plan_.passes.push_back(std::move(pass));
  }

  std::int64_t columns_, ahead_;
  std::vector<std::int64_t> lengths_;       // of the rows
  std::vector<std::int64_t> numbers_;       // by position, in the order of decoding; -1: unknown
  std::vector<std::int64_t> placeholders_;  // positions that hold one
  std::int64_t recompute_ = -1;             // the position among them whose code has become known; -1: none
  ZiparPlan plan_;
};

}  // namespace

std::int64_t ZiparPlan::widest() const {
  std::size_t most = 1;
  for (const Pass& pass : passes) most = std::max(most, pass.size());
  return static_cast<std::int64_t>(most);
}

std::int64_t ZiparPlan::recomputed() const {
  std::int64_t count = 0;
  for (const Pass& pass : passes)
    count += std::count_if(pass.begin(), pass.end(), [](const Query& query) { return !query.decides; });
  return count;
}

ZiparPlan plan_zipar(std::int64_t rows, std::int64_t columns, std::int64_t ahead) {
  return Planner(rows, columns, ahead > 0 ? ahead : std::max<std::int64_t>(1, columns / 2)).passes();
}

}  // namespace lamplighter
