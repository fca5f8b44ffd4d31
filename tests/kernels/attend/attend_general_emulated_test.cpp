#include "tests/kernels/common/emulated_device.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "kernels/attend/attend_args.h"
#include "kernels/attend/cuda_general.h"
#include "tests/kernels/attend/attend_problem.h"

// CUDA's attention without tensor cores on an emulated device against the CPU operator.
namespace lamplighter::test {
namespace {

template <class Cache, int kPack, int kQueries>
void launch_rows(const AttendArgs& args, const Workspace& workspace, Rows rows) {
  const int64_t queries = rows.count * (args.heads / args.kv_heads);
  const int64_t tiles = (queries + kQueries - 1) / kQueries;
  emulated::launch({static_cast<unsigned>(workspace.splits), static_cast<unsigned>(args.kv_heads * tiles),
                    static_cast<unsigned>(args.sequences)},
                   {kKeys}, 0, [&] { partial_kernel<Cache, kPack, kQueries>(args, workspace, rows); });
  const int64_t elements = args.sequences * rows.count * args.heads * args.head_dim;
  emulated::launch({static_cast<unsigned>((elements + kRowThreads - 1) / kRowThreads)}, {kRowThreads}, 0,
                   [&] { combine_kernel<typename Cache::Element>(args, workspace, rows); });
}

template <class Cache>
void launch(const AttendArgs& args, const Workspace& workspace) {
  using T = typename Cache::Element;
  emulated::launch({static_cast<unsigned>(args.sequences * args.rows)}, {kRowThreads}, 0,
                   [&] { append_kernel<Cache>(args, static_cast<T*>(workspace.queries)); });
  constexpr int kPack = 16 / static_cast<int>(sizeof(T));
  const bool packed = args.head_dim % kPack == 0, single = args.rows * args.heads == args.kv_heads;
  const auto kernels = packed   ? single ? launch_rows<Cache, kPack, 1> : launch_rows<Cache, kPack, 8>
                         : single ? launch_rows<Cache, 1, 1>
                                : launch_rows<Cache, 1, 8>;
  for (int64_t begin = 0; begin < args.rows; begin += kRowsPerPass) {
    const int64_t left = args.rows - begin;
    kernels(args, workspace,
            {static_cast<int>(begin), static_cast<int>(std::min<int64_t>(left, kRowsPerPass))});
  }
}

at::Tensor run_emulated(const AttendCall& call, at::Tensor cache) {
  AttendArgs args = attend_args(call.qkv, cache, call.layer, call.positions, call.lengths, call.tree_mask,
                                call.rotary, call.heads, call.kv_heads, call.scale);
  const at::Tensor out = at::full({args.sequences, args.rows, args.heads * args.head_dim},
                                  std::numeric_limits<float>::quiet_NaN(), call.qkv.options());
  args.out = out.mutable_data_ptr();
  size_t bytes = 0;
  split_workspace(args, nullptr, &bytes);
  at::Tensor memory = at::full({static_cast<int64_t>(bytes)}, 0xFF, at::kByte);  // NaN
  const Workspace workspace = split_workspace(args, memory.mutable_data_ptr(), &bytes);
  if (args.type == ElementType::kFloat32) {
    (args.rounded_cache ? launch<RoundedCache<float>> : launch<PlainCache<float>>)(args, workspace);
  } else {
    (args.rounded_cache ? launch<RoundedCache<BFloat16Bits>> : launch<PlainCache<BFloat16Bits>>)(args,
                                                                                                 workspace);
  }
  return out;
}

class AttendGeneralEmulatedTest : public ::testing::TestWithParam<at::ScalarType> {
 protected:
  void TearDown() override { emulated::shuffle() = 0; }
  std::mt19937 rng_{29};
};

TEST_P(AttendGeneralEmulatedTest, MatchesTheCpu) {
  constexpr int64_t kHeadDims[] = {2, 20, 48, 64, 100, 128, 256};
  for (int trial = 0; trial < 42; ++trial) {
    emulated::shuffle() = static_cast<unsigned>(trial % 3);
    AttendShape shape;
    shape.sequences = pick(rng_, 1, 3);
    shape.rows = trial % 3 == 0 ? 1 : pick(rng_, 2, 70);
    shape.kv_heads = pick(rng_, 1, 2);
    shape.heads = shape.kv_heads * (trial % 2 == 0 ? 1 : 3);
    shape.head_dim = kHeadDims[trial % 7];
    shape.most_length = trial % 5 == 0 ? 0 : pick(rng_, 1, 400);
    shape.masks = trial % 2 == 0 ? 0 : 1;
    SCOPED_TRACE(::testing::Message()
                 << trial << ": S " << shape.sequences << " R " << shape.rows << " heads " << shape.heads
                 << "/" << shape.kv_heads << " D " << shape.head_dim << " length " << shape.most_length
                 << " masks " << shape.masks << (trial % 3 == 1 ? ", rounded cache" : ""));
    AttendCall call = trial % 4 == 3 ? make_growing_call(rng_, shape, pick(rng_, 0, 90), GetParam())
                                     : make_call(rng_, shape, GetParam());
    if (trial % 3 == 1) call = on_rounded_cache(call);
    const at::Tensor cache = call.cache.clone();
    const at::Tensor got = run_emulated(call, cache).to(at::kDouble);
    const at::Tensor expected = call.run().to(at::kDouble);
    const double error = ((got - expected).abs() / (expected.abs() + 1)).max().item<double>();
    EXPECT_LE(error, GetParam() == at::kFloat ? 1e-5 : 6e-3);  // NaN fails
    EXPECT_TRUE(same_bits(cache, call.cache));
  }
}

INSTANTIATE_TEST_SUITE_P(, AttendGeneralEmulatedTest, ::testing::Values(at::kFloat, at::kBFloat16),
                         [](const auto& test) { return std::string(c10::toString(test.param)); });

}  // namespace
}  // namespace lamplighter::test
