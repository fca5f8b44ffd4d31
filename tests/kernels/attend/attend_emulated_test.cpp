#include "tests/kernels/common/emulated_device.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/isnan.h>
#include <gtest/gtest.h>

#include "kernels/attend/attend_args.h"
#include "kernels/attend/cuda_join.h"
#include "kernels/attend/cuda_mma.h"
#include "kernels/attend/cuda_one.h"
#include "tests/kernels/attend/attend_problem.h"

// CUDA's attention of bf16 and fp16 on an emulated device against the CPU operator.
namespace lamplighter::test {
namespace {

template <class T, int kHead>
void launch_pass(const AttendArgs& args, const AttendPass& pass, const SpanResults& results) {
  const auto kernel = pass.one           ? attend_one_kernel<T, kHead>
                      : pass.slices == 4 ? attend_span_kernel<T, kHead, 4>
                      : pass.slices == 2 ? attend_span_kernel<T, kHead, 2>
                                         : attend_span_kernel<T, kHead, 1>;
  emulated::launch({static_cast<unsigned>(pass.splits), static_cast<unsigned>(args.kv_heads),
                    static_cast<unsigned>(args.sequences)},
                   {static_cast<unsigned>(pass.threads)}, pass.one ? 0 : kSpanSharedBytes,
                   [&] { kernel(args, pass, results); });
  if (pass.one && pass.splits == 1) return;
  const int64_t threads = args.sequences * pass.count * args.heads * (kHead / 4);
  emulated::launch({static_cast<unsigned>((threads + kJoinThreads - 1) / kJoinThreads)}, {kJoinThreads}, 0,
                   [&] { attend_join_kernel<T, kHead>(args, pass, results); });
}

// The call's tensors as the kernels take them. fp16 goes under the name of bf16, which operators on the CPU
// know.
AttendArgs arguments(const AttendCall& call) {
  const bool half = call.qkv.scalar_type() == at::kHalf;
  at::Tensor qkv = half ? call.qkv.view(at::kBFloat16) : call.qkv;
  at::Tensor cache = half ? call.cache.view(at::kBFloat16) : call.cache;
  AttendArgs args = attend_args(qkv, cache, call.layer, call.positions, call.lengths, call.tree_mask,
                                call.rotary, call.heads, call.kv_heads, call.scale);
  if (half) args.type = ElementType::kFloat16;
  return args;
}

// `call` on the emulated device; its cache in place.
at::Tensor run_emulated(const AttendCall& call) {
  AttendArgs args = arguments(call);
  const at::Tensor out = at::full({args.sequences, args.rows, args.heads * args.head_dim},
                                  std::numeric_limits<float>::quiet_NaN(), call.qkv.options());
  args.out = out.mutable_data_ptr();
  EXPECT_TRUE(attend_has_spans(args));
  size_t bytes = 0;
  span_results(args, nullptr, &bytes);
  at::Tensor workspace = at::full({static_cast<int64_t>(bytes)}, 0xFF, at::kByte);  // NaN
  const SpanResults results = span_results(args, workspace.mutable_data_ptr(), &bytes);
  const bool bf16 = args.type == ElementType::kBFloat16;
  const auto launch = args.head_dim == 64
                          ? bf16 ? launch_pass<BFloat16Bits, 64> : launch_pass<Float16Bits, 64>
                      : bf16 ? launch_pass<BFloat16Bits, 128>
                             : launch_pass<Float16Bits, 128>;
  AttendPass pass{};
  for (int64_t first = 0; first < args.rows; first += pass.count) {
    pass = attend_pass(args, first);
    launch(args, pass, results);
  }
  return out;
}

class AttendEmulatedTest : public ::testing::TestWithParam<std::tuple<at::ScalarType, int64_t>> {
 protected:
  void TearDown() override { emulated::shuffle() = 0; }

  at::ScalarType dtype() const { return std::get<0>(GetParam()); }
  int64_t head_dim() const { return std::get<1>(GetParam()); }

  // The emulated kernels against the CPU operator in bf16, or in fp32 when the dtype is fp16.
  void expect_twin(AttendCall call) {
    AttendCall host = call;
    host.cache = call.cache.clone();
    const bool half = dtype() == at::kHalf;
    if (half) {
      host.qkv = host.qkv.to(at::kFloat);
      host.cache = host.cache.to(at::kFloat);
    }
    const at::Tensor expected = host.run().to(at::kDouble);
    const at::Tensor got = run_emulated(call).to(at::kDouble);
    const double error = ((got - expected).abs() / (expected.abs() + 1)).max().item<double>();
    EXPECT_LE(error, 6e-3);  // NaN fails
    if (!half) {
      EXPECT_TRUE(same_bits(call.cache, host.cache));
      return;
    }
    EXPECT_TRUE(at::isnan(call.cache).equal(at::isnan(host.cache)));
    const at::Tensor difference = call.cache.to(at::kFloat).nan_to_num(0) - host.cache.nan_to_num(0);
    EXPECT_LE(difference.abs().max().item<float>(), 4e-3);
  }

  AttendShape random_shape(int trial) {
    constexpr int64_t kRows[] = {1, 2, 8, 26, 59, 64};
    AttendShape shape;
    shape.sequences = pick(rng_, 1, 3);
    shape.rows = trial < 6 ? kRows[trial] : pick(rng_, 1, 64);
    shape.kv_heads = pick(rng_, 1, 2);
    shape.heads = shape.kv_heads * (trial % 3 == 0 ? pick(rng_, 2, 4) : 1);
    shape.head_dim = head_dim();
    shape.most_length = trial % 5 == 0 ? pick(rng_, 0, 3) : pick(rng_, 4, 700);
    shape.masks = trial % 2 == 0 ? 0 : pick(rng_, 0, 1) * (shape.sequences - 1) + 1;
    return shape;
  }

  std::mt19937 rng_{23};
};

TEST_P(AttendEmulatedTest, MatchesTheCpu) {
  for (int trial = 0; trial < 14; ++trial) {
    emulated::shuffle() = static_cast<unsigned>(trial % 3);
    const AttendShape shape = random_shape(trial);
    SCOPED_TRACE(::testing::Message()
                 << trial << ": S " << shape.sequences << " R " << shape.rows << " heads " << shape.heads
                 << "/" << shape.kv_heads << " length " << shape.most_length << " masks " << shape.masks);
    expect_twin(trial % 4 == 3 ? make_growing_call(rng_, shape, pick(rng_, 0, 90), dtype())
                               : make_call(rng_, shape, dtype()));
  }
}

TEST_P(AttendEmulatedTest, MatchesTheCpuAtTheEdgesOfTilesSpansAndCaches) {
  for (const int64_t length : {63, 64, 65, 127, 128, 255, 256, 509, 512, 513}) {
    for (const int64_t rows : {5, 1}) {
      AttendCall call = make_call(rng_, {1, rows, 1, 1, head_dim(), length, length % 2}, dtype());
      call.cache = call.cache.narrow(4, 0, length + rows).contiguous();  // the last row is that of the cache
      SCOPED_TRACE(::testing::Message() << length << " + " << rows);
      expect_twin(call);
    }
  }
}

TEST_P(AttendEmulatedTest, MatchesTheCpuOnMoreQueriesThanABlockTakes) {
  expect_twin(make_call(rng_, {1, 70, 3, 1, head_dim(), 40, 1}, dtype()));
  expect_twin(make_call(rng_, {2, 200, 1, 1, head_dim(), 7, 0}, dtype()));
}

// Bytes of one query's keys and values that a pass has to read.
int64_t cache_bytes(const AttendCall& call) {
  int64_t keys = 0;
  for (int64_t s = 0; s < call.qkv.size(0); ++s) keys += start_of(call, s) + call.qkv.size(1);
  return keys * call.kv_heads * call.cache.size(5) * 2 * call.cache.element_size();
}

TEST_P(AttendEmulatedTest, ReadsEveryKeyOnceForAllRowsAndHeadsOfItsGroup) {
  for (const int64_t group : {1, 2}) {
    for (const int64_t rows : {2, 26, 60}) {
      AttendCall call = make_call(rng_, {2, rows, 2 * group, 2, head_dim(), 300, 1}, dtype());
      emulated::counters() = {};
      run_emulated(call);
      EXPECT_EQ(emulated::counters().copied_bytes, cache_bytes(call)) << rows << " rows, group " << group;
      EXPECT_EQ(emulated::counters().bank_conflicts, 0);
    }
  }
}

// However the rows are divided into calls: where a prefix ends and how many rows ride along leave no trace,
// but that a single query has a kernel of its own.
TEST_P(AttendEmulatedTest, RowsHaveTheSameBitsInSeveralCalls) {
  for (const int64_t masks : {0, 1}) {
    AttendCall call = make_call(rng_, {2, 40, 4, 2, head_dim(), 245, masks}, dtype());
    const at::Tensor cache = call.cache.clone();
    const at::Tensor out = run_emulated(call);
    for (int64_t first = 0; first < 40;) {
      const int64_t count = std::min<int64_t>(40 - first, first < 3 ? 1 : pick(rng_, 2, 20));
      AttendCall part = rows_of(call, cache, first, count, first);
      EXPECT_TRUE(same_bits(run_emulated(part), out.narrow(1, first, count)))
          << first << " + " << count << ", masks " << masks;
      first += count;
    }
    EXPECT_TRUE(same_bits(cache, call.cache));
  }
}

// A single query: the keys beside it in the cache and its length leave no trace.
TEST_P(AttendEmulatedTest, ASingleQuerysBitsAreThoseOfTheKeysThatItSees) {
  for (const int64_t length : {0, 5, 245, 700}) {
    AttendCall call = make_call(rng_, {2, 1, 2, 2, head_dim(), length, 0}, dtype());
    const at::Tensor before = call.cache.clone();
    const at::Tensor out = run_emulated(call);
    for (int64_t s = 0; s < 2; ++s) {
      AttendCall other = call;
      other.cache = before.clone();
      for (int64_t i = 0; i < 2; ++i) {
        const int64_t end = i == s ? start_of(call, i) + 1 : 0;
        other.cache.select(2, i).slice(3, end).fill_(std::numeric_limits<float>::quiet_NaN());
      }
      EXPECT_TRUE(same_bits(run_emulated(other).select(0, s), out.select(0, s))) << length;
    }
  }
}

TEST_P(AttendEmulatedTest, SequencesDoNotDependOnEachOther) {
  AttendCall all = make_call(rng_, {3, 9, 2, 2, head_dim(), 150, 1}, dtype());
  const at::Tensor before = all.cache.clone();
  const at::Tensor out = run_emulated(all);
  for (int64_t s = 0; s < 3; ++s) {
    AttendCall one = all;
    one.qkv = all.qkv.narrow(0, s, 1).contiguous();
    one.positions = all.positions.narrow(0, s, 1).contiguous();
    one.lengths = all.lengths.narrow(0, s, 1).contiguous();
    one.cache = before.narrow(2, s, 1).contiguous();
    EXPECT_TRUE(same_bits(run_emulated(one), out.narrow(0, s, 1))) << s;
  }
}

// A row that holds NaN shows in the rows that see it, and in no other.
TEST_P(AttendEmulatedTest, HiddenRowsLeaveNoTrace) {
  int64_t blind = 0;
  for (const int64_t rows : {30, 4}) {
    AttendCall call = make_call(rng_, {1, rows, 2, 2, head_dim(), 100, 1}, dtype());
    AttendCall other = call;
    other.cache = call.cache.clone();
    other.qkv = call.qkv.clone();
    const int64_t changed = rows > 4 ? 4 : 1;
    other.qkv.select(1, changed).fill_(std::numeric_limits<float>::quiet_NaN());
    const at::Tensor a = run_emulated(call);
    const at::Tensor b = run_emulated(other);
    for (int64_t r = 0; r < rows; ++r) {
      const bool seen = sees(call, 0, r, changed);
      EXPECT_EQ(same_bits(a.select(1, r), b.select(1, r)), !seen) << r;
      EXPECT_EQ(at::isnan(b.select(1, r)).all().item<bool>(), seen) << r;
      blind += seen ? 0 : 1;
    }
  }
  EXPECT_GT(blind, 0);
}

TEST_P(AttendEmulatedTest, LargeScoresStayFinite) {
  for (const int64_t rows : {7, 1}) {
    AttendCall call = make_call(rng_, {1, rows, 2, 2, head_dim(), 200, 1}, dtype());
    call.qkv.mul_(60);
    call.cache.mul_(60);
    EXPECT_TRUE(run_emulated(call).isfinite().all().item<bool>());
  }
}

INSTANTIATE_TEST_SUITE_P(, AttendEmulatedTest,
                         ::testing::Combine(::testing::Values(at::kBFloat16, at::kHalf),
                                            ::testing::Values(64, 128)),
                         [](const auto& test) {
                           return std::string(c10::toString(std::get<0>(test.param))) + "_" +
                                  std::to_string(std::get<1>(test.param));
                         });

}  // namespace
}  // namespace lamplighter::test
