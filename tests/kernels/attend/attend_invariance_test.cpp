#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "tests/kernels/attend/attend_problem.h"
#include "tests/kernels/common/kernel_test.h"

// A row's bits are its own, however the rows before it came into the cache: one at a time, in chunks, as a
// tree or as a tree that grows over several calls.
namespace lamplighter::test {
namespace {

class AttendInvarianceTest : public KernelTest {};

TEST_P(AttendInvarianceTest, PrefillInChunksEqualsPrefillAtOnce) {
  for (const int64_t head_dim : {20, 64, 128, -64}) {  // the last over a rounded cache
    const AttendShape shape{3, 50, 4, 2, std::abs(head_dim), 37, 0};
    AttendCall whole = make_call(rng_, shape, dtype());
    if (head_dim < 0) whole = on_rounded_cache(whole);
    at::Tensor cache = whole.cache.clone();
    const at::Tensor out = whole.run();
    for (int64_t first = 0; first < shape.rows;) {
      const int64_t count = std::min(shape.rows - first, pick(rng_, 1, 13));
      const at::Tensor chunk = rows_of(whole, cache, first, count, first).run();
      ASSERT_TRUE(same_bits(chunk, out.narrow(1, first, count))) << first << " + " << count;
      first += count;
    }
    EXPECT_TRUE(same_bits(cache, whole.cache));
  }
}

TEST_P(AttendInvarianceTest, TreeNodesEqualStepsAlongTheirPaths) {
  for (const int64_t head_dim : {6, 64, 100, -64}) {
    const AttendShape shape{2, 26, 4, 2, std::abs(head_dim), 61, 0};
    AttendCall tree = make_call(rng_, shape, dtype());
    if (head_dim < 0) tree = on_rounded_cache(tree);
    const std::vector<int64_t> parents = random_tree(rng_, shape.rows);
    tree.tree_mask = pack_mask({ancestor_mask(parents)});
    const at::Tensor before = tree.cache.clone();
    const at::Tensor out = tree.run();
    AttendCall steps = tree;
    steps.tree_mask = at::empty({0}, at::kLong);
    for (int64_t node = 0; node < shape.rows; ++node) {
      at::Tensor cache = before.clone();
      at::Tensor last;
      int64_t taken = 0;
      for (const int64_t j : path_to(parents, node)) last = rows_of(steps, cache, j, 1, taken++).run();
      ASSERT_TRUE(same_bits(last, out.narrow(1, node, 1))) << "node " << node << " at depth " << taken;
    }
  }
}

// Rows [first, first + count) of a tree whose earlier rows are in `cache` already, in place.
at::Tensor run_level(const AttendCall& tree, const std::vector<std::vector<bool>>& visible,
                     const at::Tensor& cache, int64_t first, int64_t count) {
  AttendCall level = rows_of(tree, cache, first, count, first);
  std::vector<std::vector<bool>> rows(visible.begin() + first, visible.begin() + first + count);
  for (auto& row : rows) row.resize(static_cast<size_t>(first + count));
  level.tree_mask = pack_mask({rows});
  return level.run();
}

// Decodes `tree` in random levels and expects the bits of a single call.
void expect_levels_equal(std::mt19937& rng, AttendCall tree, const std::vector<int64_t>& parents) {
  const std::vector<std::vector<bool>> visible = ancestor_mask(parents);
  tree.tree_mask = pack_mask({visible});
  at::Tensor cache = tree.cache.clone();
  const at::Tensor out = tree.run();
  const auto rows = static_cast<int64_t>(parents.size());
  for (int64_t first = 0; first < rows;) {
    const int64_t count = std::min(rows - first, pick(rng, 1, 9));
    const at::Tensor level = run_level(tree, visible, cache, first, count);
    ASSERT_TRUE(same_bits(level, out.narrow(1, first, count))) << "rows " << first << " + " << count;
    first += count;
  }
  EXPECT_TRUE(same_bits(cache, tree.cache));
}

TEST_P(AttendInvarianceTest, TreesInSeveralCallsEqualTreesAtOnce) {
  for (const int64_t head_dim : {6, 64, 100}) {
    for (const int64_t length : {0, 61}) {
      const AttendShape shape{2, 90, 4, 2, head_dim, length, 0};
      expect_levels_equal(rng_, make_call(rng_, shape, dtype()), random_tree(rng_, shape.rows));
    }
  }
}

// Values so that any other order of summation shows even after rounding to bf16: equal weights (q = 0), and
// every third value of a chain cancels a large one two steps before. `chains` rows belong to one step.
void make_order_visible(AttendCall& call, int64_t chains) {
  const int64_t d = call.cache.size(5);
  call.qkv.narrow(2, 0, call.heads * d).zero_();
  at::Tensor values = call.qkv.narrow(2, (call.heads + call.kv_heads) * d, call.kv_heads * d);
  for (int64_t r = 0; r < values.size(1); ++r) {
    const int64_t depth = r / chains;
    if (depth % 3 == 0) values.select(1, r).mul_(1 << 20);
    if (depth % 3 == 2) values.select(1, r).copy_(-values.select(1, r - 2 * chains));
  }
}

TEST_P(AttendInvarianceTest, KeysAreSummedInOneOrder) {
  constexpr int64_t kChains = 2;
  for (const int64_t length : {0, 1, 6}) {
    const AttendShape shape{2, 30, 2, 1, 64, length, 0};
    AttendCall tree = make_call(rng_, shape, dtype());
    make_order_visible(tree, kChains);
    std::vector<int64_t> parents;
    for (int64_t r = 0; r < shape.rows; ++r) parents.push_back(r < kChains ? -1 : r - kChains);
    tree.tree_mask = pack_mask({ancestor_mask(parents)});
    const at::Tensor before = tree.cache.clone();
    AttendCall levels = tree;
    levels.cache = before.clone();
    expect_levels_equal(rng_, levels, parents);
    const at::Tensor out = tree.run();
    AttendCall steps = tree;
    steps.tree_mask = at::empty({0}, at::kLong);
    for (int64_t chain = 0; chain < kChains; ++chain) {
      at::Tensor cache = before.clone();
      for (int64_t node = chain; node < shape.rows; node += kChains) {
        const at::Tensor last = rows_of(steps, cache, node, 1, node / kChains).run();
        ASSERT_TRUE(same_bits(last, out.narrow(1, node, 1))) << "prefix " << length << ", node " << node;
      }
    }
    AttendCall whole = make_call(rng_, shape, dtype());
    make_order_visible(whole, 1);
    at::Tensor cache = whole.cache.clone();
    const at::Tensor causal = whole.run();
    for (int64_t first = 0; first < shape.rows; first += 5) {
      const at::Tensor chunk = rows_of(whole, cache, first, 5, first).run();
      ASSERT_TRUE(same_bits(chunk, causal.narrow(1, first, 5))) << "prefix " << length << ", row " << first;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, AttendInvarianceTest, all_cases(), case_name);

}  // namespace
}  // namespace lamplighter::test
