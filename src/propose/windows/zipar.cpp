#include "propose/windows/zipar.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <vector>

#include "tree/open_rows.h"

namespace lamplighter {
namespace {

// Which columns of the cache, those behind the prompt, the rows of a pass see: as far as they hold what
// stands at or before their own place. A row keeps its column for the picture; that of a stand-in is never
// seen again once the true code has been run.
class Columns {
 public:
  explicit Columns(std::int64_t blank) : blank_(blank) {}

  // The first column of the next pass.
  std::int64_t begin() const { return blank_ + static_cast<std::int64_t>(places_.size()); }

  void add(const OpenRows::Pass& pass) {
    for (const OpenRows::Row& row : pass) {
      if (!row.decides) *std::find(places_.begin(), places_.end(), row.place) = kStale;
      places_.push_back(row.place);
    }
  }

  // Sets the bits of what is seen from `place`; gives the number of places up to it that hold nothing.
  std::int64_t see(std::int64_t place, std::int64_t* bits) const {
    std::int64_t lacking = place + 1;
    for (std::size_t i = 0; i < places_.size(); ++i) {
      if (places_[i] > place) continue;
      set(bits, blank_ + static_cast<std::int64_t>(i));
      --lacking;
    }
    return lacking;
  }

  static void set(std::int64_t* bits, std::int64_t column) {
    const auto word = static_cast<std::uint64_t>(bits[column / 64]);
    bits[column / 64] = static_cast<std::int64_t>(word | std::uint64_t{1} << (column % 64));
  }

 private:
  static constexpr std::int64_t kStale = std::int64_t{1} << 40;  // seen from nowhere

  std::int64_t blank_;
  std::vector<std::int64_t> places_;  // of the columns behind the blank ones
};

// Most places that a row can lack: it is run when the rows above it are `ahead`, 2 ahead, .. codes longer.
std::int64_t most_lacking(const OpenRows& plan) {
  Columns columns(0);
  std::int64_t most = 0;
  std::vector<std::int64_t> bits(plan.order.size() / 32 + 2);
  for (const OpenRows::Pass& pass : plan.passes) {
    columns.add(pass);
    for (const OpenRows::Row& row : pass) most = std::max(most, columns.see(row.place, bits.data()));
  }
  return most;
}

// P = passes, and one of a picture that is complete: a row that sees itself. R = most rows of a pass, W =
// words of a mask.
class Zipar : public Proposer {
 public:
  Zipar(const RowOptions& options, const c10::Device& device) : options_(options), device_(device) {}

  void allocate(const RunShape& shape, std::int64_t /*rows*/) override {
    const std::int64_t rows = shape.grid->rows, columns = shape.grid->columns;
    guided_ = shape.guided;
    const OpenRows plan = open_rows(rows, columns, options_.ahead);
    order_ = integers(plan.order, device_).unsqueeze(0);
    shape_.nodes = shape_.widest = plan.widest();
    shape_.depth = shape_.nodes - 1;
    shape_.again = plan.again();
    shape_.blank = options_.blank ? most_lacking(plan) : 0;
    make_tables(plan);
  }

  TreeShape shape() const override { return shape_; }
  at::Tensor order() const override { return order_; }

  Draft propose(const RunState& run) override {
    const at::Tensor pass = passes_.index_select(0, run.steps);  // [I]
    const std::int64_t most =
        run.fixed_shapes ? shape_.nodes : rows_.index_select(0, pass).max().item<std::int64_t>();
    const auto table = [&](const at::Tensor& all) {  // [I, most, ..]
      return all.index_select(0, pass).narrow(1, 0, most).contiguous();
    };
    const at::Tensor code = table(codes_);
    Draft draft;
    draft.depths = table(depths_);
    draft.mask = table(seen_);
    draft.tokens = run.codes.gather(1, code.clamp_min(0)).masked_fill(code < 0, -1);
    draft.lengths = at::stack({run.lengths - per_sequence(before_.index_select(0, pass), guided_),
                               run.lengths + per_sequence(again_.index_select(0, pass), guided_)});
    draft.open = open_.index_select(0, pass);
    return draft;
  }

 private:
  void make_tables(const OpenRows& plan) {
    const auto total = static_cast<std::int64_t>(plan.order.size());
    const auto passes = static_cast<std::int64_t>(plan.passes.size()) + 1;
    const std::int64_t most = shape_.nodes;
    const std::int64_t words = (shape_.blank + total + shape_.again + most + 63) / 64;
    passes_ = at::full({total + 1}, passes - 1, at::kLong);
    rows_ = at::full({passes}, 1, at::kLong);
    open_ = at::full({passes}, 1, at::kLong);
    before_ = at::zeros({passes}, at::kLong);
    again_ = at::zeros({passes}, at::kLong);
    codes_ = at::full({passes, most}, -1, at::kLong);
    depths_ = at::zeros({passes, most}, at::kLong);
    seen_ = at::zeros({passes, most, words}, at::kLong);
    Columns columns(shape_.blank);
    std::int64_t steps = 1;
    for (std::int64_t pass = 0; pass < passes; ++pass) {
      const bool complete = pass == passes - 1;
      add_pass(complete ? OpenRows::Pass{} : plan.passes[static_cast<std::size_t>(pass)], pass, steps,
               columns);
    }
    for (at::Tensor* table : {&passes_, &rows_, &open_, &before_, &again_, &codes_, &depths_, &seen_})
      *table = table->to(device_);
  }

  // Advances `steps`, the number of codes before the pass.
  void add_pass(const OpenRows::Pass& rows, std::int64_t pass, std::int64_t& steps, Columns& columns) {
    const auto at = [&](at::Tensor& table) { return table[pass].mutable_data_ptr<std::int64_t>(); };
    const std::int64_t most = shape_.nodes, words = seen_.size(2), begin = columns.begin();
    *at(before_) = shape_.blank + steps - 1;
    *at(again_) = begin - *at(before_);
    passes_.mutable_data_ptr<std::int64_t>()[steps] = pass;
    columns.add(rows);
    for (std::int64_t r = 0; r < most; ++r) {
      std::int64_t* bits = at(seen_) + r * words;
      Columns::set(bits, begin + r);
      if (r >= static_cast<std::int64_t>(rows.size())) continue;
      const OpenRows::Row& row = rows[static_cast<std::size_t>(r)];
      at(codes_)[r] = row.code;
      at(depths_)[r] = row.place - (steps - 1);
      const std::int64_t lacking = columns.see(row.place, bits);
      for (std::int64_t column = 0; column < std::min(lacking, shape_.blank); ++column)
        Columns::set(bits, column);
    }
    if (rows.empty()) return;
    *at(rows_) = static_cast<std::int64_t>(rows.size());
    *at(open_) = std::count_if(rows.begin(), rows.end(), [](const auto& row) { return row.decides; });
    steps += *at(open_);
  }

  RowOptions options_;
  c10::Device device_;
  bool guided_ = false;
  TreeShape shape_;
  at::Tensor order_;   // int64 [1, total]
  at::Tensor passes_;  // int64 [total + 1]: the pass after so many codes
  at::Tensor rows_;    // int64 [P]: rows of a pass
  at::Tensor open_;    // int64 [P]: those of them that decide a code
  at::Tensor before_;  // int64 [P]: rows that commits have counted behind the prompt
  at::Tensor again_;   // int64 [P]: rows that were run once more before
  at::Tensor codes_;   // int64 [P, R]: which is run, a number in the order of drawing; -1: none
  at::Tensor depths_;  // int64 [P, R]: places behind that of code steps - 1 in raster order
  at::Tensor seen_;    // int64 [P, R, W], a mask for `attend`
};

}  // namespace

std::unique_ptr<Proposer> make_zipar(const Method& method, const Models& models) {
  return std::make_unique<Zipar>(method.rows, models.target->placement().device);
}

}  // namespace lamplighter
