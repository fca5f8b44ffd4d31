#include "draft/rows/zipar.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "draft/rows/verify_rows.h"
#include "draft/rows/zipar_plan.h"

namespace lamplighter {
namespace {

// Which cache slots behind the prompt the queries of a pass see: those that hold positions up to their own. A
// query keeps its slot for the image; the slot of a placeholder is never seen again once the true code has
// been run.
class SlotMap {
 public:
  explicit SlotMap(std::int64_t zero_rows) : zero_rows_(zero_rows) {}

  // The first slot of the next pass.
  std::int64_t begin() const { return zero_rows_ + static_cast<std::int64_t>(positions_.size()); }

  void add(const ZiparPlan::Pass& pass) {
    for (const ZiparPlan::Query& query : pass) {
      if (!query.decides) *std::find(positions_.begin(), positions_.end(), query.position) = kStale;
      positions_.push_back(query.position);
    }
  }

  // Sets the bits of the slots that are seen from `position`; gives the number of positions up to it that
  // have no slot.
  std::int64_t see(std::int64_t position, std::int64_t* bits) const {
    std::int64_t missing = position + 1;
    for (std::size_t i = 0; i < positions_.size(); ++i) {
      if (positions_[i] > position) continue;
      set(bits, zero_rows_ + static_cast<std::int64_t>(i));
      --missing;
    }
    return missing;
  }

  static void set(std::int64_t* bits, std::int64_t slot) {
    const auto word = static_cast<std::uint64_t>(bits[slot / 64]);
    bits[slot / 64] = static_cast<std::int64_t>(word | std::uint64_t{1} << (slot % 64));
  }

 private:
  static constexpr std::int64_t kStale = std::int64_t{1} << 40;  // seen from nowhere

  std::int64_t zero_rows_;
  std::vector<std::int64_t> positions_;  // of the slots behind the zero rows
};

// Most positions that a query can miss: it runs when the rows above it are `ahead`, 2 ahead, .. codes longer.
std::int64_t most_missing(const ZiparPlan& plan) {
  SlotMap slots(0);
  std::int64_t most = 0;
  std::vector<std::int64_t> bits(plan.order.size() / 32 + 2);
  for (const ZiparPlan::Pass& pass : plan.passes) {
    slots.add(pass);
    for (const ZiparPlan::Query& query : pass) most = std::max(most, slots.see(query.position, bits.data()));
  }
  return most;
}

// P = passes, and one for a complete image: a query that sees itself. Q = most queries of a pass, W = words
// of a mask.
class Zipar : public DraftMethod {
 public:
  Zipar(const Method& method, const Models& models)
      : ahead_(method.options.ahead.value_or(0)),
        sees_zeros_(method.options.zipar == "official"),
        device_(models.target->placement().device) {}

  void allocate(const RunShape& shape, std::int64_t /*slots*/) override {
    guided_ = shape.guided;
    const ZiparPlan plan = plan_zipar(shape.grid->rows, shape.grid->columns, ahead_);
    order_ = integers(plan.order, device_).unsqueeze(0);
    shape_.nodes = shape_.widest = plan.widest();
    shape_.depth = shape_.nodes - 1;
    shape_.recompute_rows = plan.recomputed();
    shape_.zero_rows = sees_zeros_ ? most_missing(plan) : 0;
    make_tables(plan);
  }

  TreeShape shape() const override { return shape_; }
  at::Tensor order() const override { return order_; }

  Draft draft(const RunState& run) override {
    const at::Tensor pass = passes_.index_select(0, run.counters.steps);  // [I]
    const std::int64_t most =
        run.fixed_shapes ? shape_.nodes : queries_.index_select(0, pass).max().item<std::int64_t>();
    const auto table = [&](const at::Tensor& all) {  // [I, most, ..]
      return all.index_select(0, pass).narrow(1, 0, most).contiguous();
    };
    const at::Tensor code = table(codes_);
    Draft draft;
    draft.nodes.depths = table(depths_);
    draft.nodes.mask = table(seen_);
    draft.tokens = run.counters.codes.gather(1, code.clamp_min(0)).masked_fill(code < 0, -1);
    draft.lengths =
        at::stack({run.counters.lengths - per_sequence(before_.index_select(0, pass), guided_),
                   run.counters.lengths + per_sequence(recomputed_.index_select(0, pass), guided_)});
    draft.kind = ParallelPositions{deciding_.index_select(0, pass)};
    return draft;
  }

  Verified verify(const RunState& run, const Draft& draft, const Scores& scores, ops::Distributions target,
                  const ops::VerifyOptions& rule) const override {
    return verify_rows(run, draft, scores, std::move(target), rule);
  }

 private:
  void make_tables(const ZiparPlan& plan) {
    const auto total = static_cast<std::int64_t>(plan.order.size());
    const auto passes = static_cast<std::int64_t>(plan.passes.size()) + 1;
    const std::int64_t most = shape_.nodes;
    const std::int64_t words = (shape_.zero_rows + total + shape_.recompute_rows + most + 63) / 64;
    passes_ = at::full({total + 1}, passes - 1, at::kLong);
    queries_ = at::full({passes}, 1, at::kLong);
    deciding_ = at::full({passes}, 1, at::kLong);
    before_ = at::zeros({passes}, at::kLong);
    recomputed_ = at::zeros({passes}, at::kLong);
    codes_ = at::full({passes, most}, -1, at::kLong);
    depths_ = at::zeros({passes, most}, at::kLong);
    seen_ = at::zeros({passes, most, words}, at::kLong);
    SlotMap slots(shape_.zero_rows);
    std::int64_t steps = 1;
    for (std::int64_t pass = 0; pass < passes; ++pass) {
      const bool complete = pass == passes - 1;
      add_pass(complete ? ZiparPlan::Pass{} : plan.passes[static_cast<std::size_t>(pass)], pass, steps,
               slots);
    }
    for (at::Tensor* table :
         {&passes_, &queries_, &deciding_, &before_, &recomputed_, &codes_, &depths_, &seen_})
      *table = table->to(device_);
  }

  // Advances `steps`, the number of codes before the pass.
  void add_pass(const ZiparPlan::Pass& queries, std::int64_t pass, std::int64_t& steps, SlotMap& slots) {
    const auto at = [&](at::Tensor& table) { return table[pass].mutable_data_ptr<std::int64_t>(); };
    const std::int64_t most = shape_.nodes, words = seen_.size(2), begin = slots.begin();
    *at(before_) = shape_.zero_rows + steps - 1;
    *at(recomputed_) = begin - *at(before_);
    passes_.mutable_data_ptr<std::int64_t>()[steps] = pass;
    slots.add(queries);
    for (std::int64_t q = 0; q < most; ++q) {
      std::int64_t* bits = at(seen_) + q * words;
      SlotMap::set(bits, begin + q);
      if (q >= static_cast<std::int64_t>(queries.size())) continue;
      const ZiparPlan::Query& query = queries[static_cast<std::size_t>(q)];
      at(codes_)[q] = query.code;
      at(depths_)[q] = query.position - (steps - 1);
      const std::int64_t missing = slots.see(query.position, bits);
      for (std::int64_t slot = 0; slot < std::min(missing, shape_.zero_rows); ++slot)
        SlotMap::set(bits, slot);
    }
    if (queries.empty()) return;
    *at(queries_) = static_cast<std::int64_t>(queries.size());
    *at(deciding_) =
        std::count_if(queries.begin(), queries.end(), [](const auto& query) { return query.decides; });
    steps += *at(deciding_);
  }

  std::int64_t ahead_;  // codes that a row is longer than the next; 0: half of its columns
  bool sees_zeros_;     // a row sees zeros for the missing positions before it; else they are left out
  c10::Device device_;
  bool guided_ = false;
  TreeShape shape_;
  at::Tensor order_;       // int64 [1, total]
  at::Tensor passes_;      // int64 [total + 1]: the pass that follows when this many codes are committed
  at::Tensor queries_;     // int64 [P]: queries of a pass
  at::Tensor deciding_;    // int64 [P]: the queries that decide a code
  at::Tensor before_;      // int64 [P]: cache slots behind the prompt that commits have counted
  at::Tensor recomputed_;  // int64 [P]: tokens that were recomputed before
  at::Tensor codes_;       // int64 [P, Q]: the code that runs, a number in the order of decoding; -1: none
  at::Tensor depths_;      // int64 [P, Q]: positions after that of code steps - 1 in raster order
  at::Tensor seen_;        // int64 [P, Q, W], a mask for `attend`
};

}  // namespace

std::unique_ptr<DraftMethod> make_zipar(const Method& method, const Models& models) {
  return std::make_unique<Zipar>(method, models);
}

}  // namespace lamplighter
