#include "tree/open_rows.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace lamplighter {
namespace {

// A picture while its passes are planned.
class Plan {
 public:
  Plan(std::int64_t rows, std::int64_t columns, std::int64_t ahead)
      : columns_(columns),
        ahead_(std::min(ahead, columns)),
        lengths_(static_cast<std::size_t>(rows)),
        numbers_(static_cast<std::size_t>(rows * columns), -1) {
    decide(0);
  }

  OpenRows passes() && {
    while (plan_.order.size() < numbers_.size()) add_pass();
    return std::move(plan_);
  }

 private:
  std::int64_t rows() const { return static_cast<std::int64_t>(lengths_.size()); }
  std::int64_t length(std::int64_t row) const { return lengths_[static_cast<std::size_t>(row)]; }
  std::int64_t number(std::int64_t place) const { return numbers_[static_cast<std::size_t>(place)]; }

  void decide(std::int64_t place) {
    numbers_[static_cast<std::size_t>(place)] = static_cast<std::int64_t>(plan_.order.size());
    ++lengths_[static_cast<std::size_t>(place / columns_)];
    plan_.order.push_back(place);
  }

  bool is_open(std::int64_t row) const {
    return length(row) > 0 || length(row - 1) >= (row == 1 ? columns_ : ahead_);
  }

  // The last code of `row`, or of the one above it where it begins: until that is known, the newest code of
  // the row above that.
  OpenRows::Row next(std::int64_t row) const {
    const std::int64_t place = row * columns_ + length(row) - 1, above = row - 2;
    return {place, number(place) >= 0 ? number(place) : number(above * columns_ + length(above) - 1)};
  }

  void add_pass() {
    OpenRows::Pass pass;
    for (std::int64_t row = 0; row < rows() && is_open(row); ++row) {
      if (length(row) < columns_) pass.push_back(next(row));
    }
    const std::size_t deciding = pass.size();
    if (ended_ >= 0) pass.push_back({ended_, number(ended_), false});
    ended_ = -1;
    for (std::size_t i = 0; i < deciding; ++i) {
      const OpenRows::Row& row = pass[i];
      const bool stood_in = plan_.order[static_cast<std::size_t>(row.code)] != row.place;
      if (stood_in) stand_ins_.push_back(row.place);
      decide(row.place + 1);
    }
    const auto known = std::find_if(stand_ins_.begin(), stand_ins_.end(),
                                    [&](std::int64_t place) { return number(place) >= 0; });
    if (known != stand_ins_.end()) {
      ended_ = *known;
      stand_ins_.erase(known);
    }
    plan_.passes.push_back(std::move(pass));
  }

  std::int64_t columns_, ahead_;
  std::vector<std::int64_t> lengths_;    // of the rows
  std::vector<std::int64_t> numbers_;    // by place, in the order of drawing; -1: not drawn
  std::vector<std::int64_t> stand_ins_;  // places that hold one
  std::int64_t ended_ = -1;              // the place among them that has become known
  OpenRows plan_;
};

}  // namespace

std::int64_t OpenRows::widest() const {
  std::size_t most = 1;
  for (const Pass& pass : passes) most = std::max(most, pass.size());
  return static_cast<std::int64_t>(most);
}

std::int64_t OpenRows::again() const {
  std::int64_t count = 0;
  for (const Pass& pass : passes)
    count += std::count_if(pass.begin(), pass.end(), [](const Row& row) { return !row.decides; });
  return count;
}

OpenRows open_rows(std::int64_t rows, std::int64_t columns, std::int64_t ahead) {
  return Plan(rows, columns, ahead > 0 ? ahead : std::max<std::int64_t>(1, columns / 2)).passes();
}

}  // namespace lamplighter
