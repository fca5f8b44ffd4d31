#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <gtest/gtest.h>

#include "tests/kernels/attend/attend_problem.h"
#include "tests/kernels/common/kernel_test.h"

namespace lamplighter::test {
namespace {

class AttendTest : public KernelTest {};

// Rotation in fp32 with every product rounded, then rounded to the dtype of x [S, R, heads, D].
at::Tensor rotated(const at::Tensor& x, const AttendCall& call) {
  const at::Tensor pairs = x.to(at::kFloat).unflatten(-1, {-1, 2});
  const at::Tensor table =
      call.rotary.index_select(0, call.positions.flatten()).view({x.size(0), x.size(1), 1, x.size(3) / 2, 2});
  const at::Tensor a = pairs.select(-1, 0), b = pairs.select(-1, 1);
  const at::Tensor c = table.select(-1, 0), s = table.select(-1, 1);
  const at::Tensor first = a * c - b * s, second = b * c + a * s;
  return at::cat({first.unsqueeze(-1), second.unsqueeze(-1)}, -1).flatten(-2).to(x.scalar_type());
}

struct Expected {
  at::Tensor out;    // fp64 [S, R, heads * D]
  at::Tensor cache;  // after the call
};

// The definition, one row at a time in fp64 over what the cache holds.
Expected reference(const AttendCall& call) {
  const bool rounds = call.cache.scalar_type() == at::kChar;
  const int64_t d = rounds ? call.cache.size(5) - kRowScaleBytes : call.cache.size(5),
                s_count = call.qkv.size(0), rows = call.qkv.size(1);
  const at::Tensor heads = call.qkv.unflatten(-1, {-1, d});
  const at::Tensor q = rotated(heads.narrow(2, 0, call.heads), call).to(at::kDouble);
  const auto stored = [&](const at::Tensor& x) { return rounds ? rounded_rows(x) : x; };
  const at::Tensor k = stored(rotated(heads.narrow(2, call.heads, call.kv_heads), call));
  const at::Tensor v = stored(heads.narrow(2, call.heads + call.kv_heads, call.kv_heads));
  Expected expected{at::empty({s_count, rows, call.heads, d}, at::kDouble), call.cache.clone()};
  for (int64_t s = 0; s < s_count; ++s) {
    const int64_t length = prefix_of(call, s), start = start_of(call, s);
    const at::Tensor slots = expected.cache[call.layer].select(1, s);  // [2, kv_heads, max_length, D]
    slots[0].narrow(1, start, rows).copy_(k[s].transpose(0, 1));
    slots[1].narrow(1, start, rows).copy_(v[s].transpose(0, 1));
    for (int64_t r = 0; r < rows; ++r) {
      std::vector<int64_t> keys;
      for (int64_t j = 0; j < length; ++j) keys.push_back(j);
      for (int64_t j = 0; j < start - length + rows; ++j) {
        if (sees(call, s, r, j)) keys.push_back(length + j);
      }
      const auto index = integers({static_cast<int64_t>(keys.size())},
                                  [&](int64_t i) { return keys[static_cast<size_t>(i)]; });
      const at::Tensor held = slots.index_select(2, index);
      const at::Tensor seen = (rounds ? expanded(held, call.qkv.scalar_type()) : held).to(at::kDouble);
      for (int64_t h = 0; h < call.heads; ++h) {
        const int64_t g = h / (call.heads / call.kv_heads);
        const at::Tensor weights = (seen[0][g].mv(q[s][r][h]) * call.scale).softmax(0);
        expected.out[s][r][h].copy_(seen[1][g].t().mv(weights));
      }
    }
  }
  expected.out = expected.out.flatten(-2);
  return expected;
}

AttendShape random_shape(std::mt19937& rng, int64_t most_length) {
  constexpr int64_t kDims[] = {2, 6, 16, 20, 48, 64, 72, 100, 128};
  AttendShape shape;
  const int64_t images = pick(rng, 1, 4);
  shape.sequences = images * pick(rng, 1, 2);
  shape.rows = pick(rng, 0, 3) == 0 ? pick(rng, 1, 64) : pick(rng, 1, 12);
  shape.kv_heads = pick(rng, 1, 3);
  shape.heads = shape.kv_heads * pick(rng, 1, 3);
  shape.head_dim = kDims[pick(rng, 0, 8)];
  shape.most_length = pick(rng, 0, 4) == 0 ? 0 : pick(rng, 0, most_length);
  shape.masks = pick(rng, 0, 2) == 0 ? 0 : pick(rng, 0, 1) == 0 ? 1 : images;
  return shape;
}

void expect_matches(AttendCall call, at::ScalarType dtype) {
  const Expected expected = reference(call);
  const at::Tensor out = call.run();
  const double tolerance = dtype == at::kFloat ? 1e-5 : 4e-3;
  const at::Tensor error = (out.to(at::kDouble) - expected.out).abs() / (expected.out.abs() + 1);
  EXPECT_LE(error.max().item<double>(), tolerance);
  // Appended rows hold the rotated keys and the values; every other bit of the cache is as it was.
  EXPECT_TRUE(same_bits(call.cache, expected.cache));
}

TEST_P(AttendTest, MatchesTheDefinitionOnRandomShapes) {
  for (int i = 0; i < 24; ++i) {
    const AttendShape shape = random_shape(rng_, 200);
    SCOPED_TRACE(::testing::Message()
                 << "case " << i << ": S " << shape.sequences << " R " << shape.rows << " heads "
                 << shape.heads << "/" << shape.kv_heads << " D " << shape.head_dim << " length "
                 << shape.most_length << " masks " << shape.masks);
    expect_matches(make_call(rng_, shape, dtype()), dtype());
  }
}

TEST_P(AttendTest, MatchesTheDefinitionOnTreesOfSeveralCalls) {
  for (int i = 0; i < 24; ++i) {
    const AttendShape shape = random_shape(rng_, 100);
    const int64_t earlier = pick(rng_, 0, 90);
    SCOPED_TRACE(::testing::Message()
                 << "case " << i << ": S " << shape.sequences << " R " << shape.rows << " heads "
                 << shape.heads << "/" << shape.kv_heads << " D " << shape.head_dim << " length "
                 << shape.most_length << " masks " << shape.masks << " earlier " << earlier);
    expect_matches(make_growing_call(rng_, shape, earlier, dtype()), dtype());
  }
}

TEST_P(AttendTest, MatchesTheDefinitionOnLongPrefixes) {
  expect_matches(make_call(rng_, {2, 5, 2, 1, 64, 4096, 1}, dtype()), dtype());
  expect_matches(make_call(rng_, {1, 64, 1, 1, 20, 4001, 0}, dtype()), dtype());
  expect_matches(make_call(rng_, {2, 9, 1, 1, 16, 9400, 1}, dtype()), dtype());
}

// As where rows of an image are sampled side by side: what is seen of all of it is in the mask.
TEST_P(AttendTest, MatchesTheDefinitionOnMasksOfWholeImages) {
  expect_matches(make_growing_call(rng_, {2, 12, 1, 1, 16, 60, 2}, 9340, dtype()), dtype());
}

TEST_P(AttendTest, MatchesTheDefinitionOnMoreThan64Rows) {
  expect_matches(make_call(rng_, {2, 130, 3, 1, 16, 9, 2}, dtype()), dtype());
  expect_matches(make_call(rng_, {1, 257, 1, 1, 16, 0, 0}, dtype()), dtype());
}

TEST_P(AttendTest, LargeScoresStayFinite) {
  AttendCall call = make_call(rng_, {1, 7, 2, 2, 16, 40, 1}, dtype());
  call.qkv.mul_(60);
  call.cache.mul_(60);
  const at::Tensor out = call.run().to(at::kDouble);
  EXPECT_TRUE(out.isfinite().all().item<bool>());
}

TEST_P(AttendTest, WithoutMaskThePrefixEndsAtTheRows) {
  AttendCall one = make_call(rng_, {3, 5, 2, 1, 64, 30, 0}, dtype());
  AttendCall two = one;
  two.cache = one.cache.clone();
  two.lengths = at::stack({one.lengths.div(2, "floor"), one.lengths});
  EXPECT_TRUE(same_bits(two.run(), one.run()));
  EXPECT_TRUE(same_bits(two.cache, one.cache));
}

TEST_P(AttendTest, SequencesDoNotDependOnEachOther) {
  for (const int64_t masks : {0, 1, 4}) {
    AttendCall all = make_call(rng_, {8, 9, 3, 3, 64, 150, masks}, dtype());
    const at::Tensor before = all.cache.clone();
    const at::Tensor out = all.run();
    for (int64_t s = 0; s < 8; ++s) {
      AttendCall one = all;
      one.qkv = all.qkv.narrow(0, s, 1).contiguous();
      one.positions = all.positions.narrow(0, s, 1).contiguous();
      one.lengths = all.lengths.narrow(0, s, 1).contiguous();
      one.cache = before.narrow(2, s, 1).contiguous();
      if (masks > 0) one.tree_mask = all.tree_mask.narrow(0, masks == 1 ? 0 : s / 2, 1).contiguous();
      EXPECT_TRUE(same_bits(one.run(), out.narrow(0, s, 1))) << s;
      EXPECT_TRUE(same_bits(one.cache, all.cache.narrow(2, s, 1))) << s;
    }
  }
}

TEST_P(AttendTest, HiddenRowsLeaveNoTrace) {
  AttendCall call = make_call(rng_, {1, 12, 2, 2, 20, 30, 1}, dtype());
  AttendCall other = call;
  other.cache = call.cache.clone();
  other.qkv = call.qkv.clone();
  const int64_t changed = 4;
  other.qkv.select(1, changed).fill_(std::numeric_limits<float>::quiet_NaN());
  const at::Tensor a = call.run();
  const at::Tensor b = other.run();
  int64_t blind = 0;
  for (int64_t r = 0; r < 12; ++r) {
    const bool equal = same_bits(a.select(1, r), b.select(1, r));
    EXPECT_EQ(equal, !sees(call, 0, r, changed)) << r;
    blind += sees(call, 0, r, changed) ? 0 : 1;
  }
  EXPECT_GT(blind, 0);
}

TEST_P(AttendTest, ThreadsDoNotChangeBits) {
  AttendCall call = make_call(rng_, {4, 40, 6, 3, 64, 700, 2}, dtype());
  AttendCall again = call;
  again.cache = call.cache.clone();
  at::set_num_threads(1);
  const at::Tensor out = call.run();
  at::set_num_threads(2);
  EXPECT_TRUE(same_bits(again.run(), out));
  EXPECT_TRUE(same_bits(again.cache, call.cache));
  at::set_num_threads(1);
}

TEST_P(AttendTest, MatchesTheDefinitionOnRoundedCaches) {
  for (int i = 0; i < 24; ++i) {
    const AttendShape shape = random_shape(rng_, 200);
    SCOPED_TRACE(::testing::Message() << "case " << i << ": R " << shape.rows << " D " << shape.head_dim
                                      << " length " << shape.most_length << " masks " << shape.masks);
    expect_matches(on_rounded_cache(make_growing_call(rng_, shape, pick(rng_, 0, 40), dtype())), dtype());
  }
}

TEST_P(AttendTest, RowsOfARoundedCacheKeepWhatIsNoNumber) {
  AttendCall call = on_rounded_cache(make_call(rng_, {1, 2, 1, 1, 16, 5, 0}, dtype()));
  const at::Tensor values = call.qkv[0].narrow(1, 32, 16);
  values[0].zero_();
  values[1][3] = std::numeric_limits<float>::infinity();
  const at::Tensor out = call.run();
  EXPECT_TRUE(out[0][0].isfinite().all().item<bool>());
  EXPECT_TRUE(out[0][1].isnan().all().item<bool>());
  const at::Tensor rows = expanded(call.cache[call.layer][1][0][0].narrow(0, 5, 2), dtype());
  EXPECT_TRUE(rows[0].eq(0).all().item<bool>());
  EXPECT_TRUE(rows[1].isnan().all().item<bool>());
}

INSTANTIATE_TEST_SUITE_P(All, AttendTest, all_cases(), case_name);

}  // namespace
}  // namespace lamplighter::test
