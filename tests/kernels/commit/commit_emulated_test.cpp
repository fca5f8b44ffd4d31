#include "tests/kernels/common/emulated_device.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "kernels/commit/commit_args.h"
#include "kernels/commit/commit_cuda.h"
#include "kernels/commit/new_tokens_cuda.h"
#include "tests/kernels/commit/commit_cases.h"

// CUDA's tree_rows, commit_tokens and new_tokens on an emulated device: the numbers of the CPU operators.
namespace lamplighter::test {
namespace {

TEST(CommitEmulatedTest, CommitsLikeTheCpu) {
  std::mt19937 rng(12);
  for (const unsigned order : {0U, 1U, 2U}) {
    emulated::shuffle() = order;
    for_commit_cases(rng, [&](const CommitCase& before, const std::string& name) {
      SCOPED_TRACE(name);
      CommitCase expected = before.copy(), got = before.copy();
      expected.commit();
      const NewTokensArgs fresh = new_tokens_args(got.tree, got.features, got.state, got.fresh);
      emulated::launch({static_cast<unsigned>(fresh.draft_sequences * fresh.new_tokens)}, {kNewTokensThreads},
                       0, [&] { new_tokens_kernel(fresh); });
      const CommitArgs args = commit_args(got.tree, got.state);
      emulated::launch({static_cast<unsigned>(args.images)}, {kCommitThreads}, 0,
                       [&] { commit_tokens_kernel(args); });
      const std::vector<at::Tensor*> a = got.changed(), b = expected.changed();
      for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(at::equal(*a[i], *b[i])) << "tensor " << i;
    });
  }
  emulated::shuffle() = 0;
}

TEST(CommitEmulatedTest, PlacesRowsLikeTheCpu) {
  std::mt19937 rng(3);
  const at::Tensor codes = integers({3, 59}, [&](int64_t) { return pick(rng, -1, 9); });
  const at::Tensor depths = integers({1, 59}, [&](int64_t) { return pick(rng, 0, 6); });
  const at::Tensor position = integers({6}, [&](int64_t) { return pick(rng, 0, 20); });
  const auto [ids, positions] = ops::tree_rows(codes, depths, position, 4, 18);
  TreeRowsArgs args = tree_rows_args(codes, depths, position, 4, 18);
  at::Tensor own_ids = at::empty(ids.sizes(), at::kLong), own_positions = at::empty(ids.sizes(), at::kLong);
  args.ids = own_ids.mutable_data_ptr<int64_t>();
  args.positions = own_positions.mutable_data_ptr<int64_t>();
  const int64_t blocks = (args.sequences * args.rows + kTreeRowsThreads - 1) / kTreeRowsThreads;
  emulated::launch({static_cast<unsigned>(blocks)}, {kTreeRowsThreads}, 0, [&] { tree_rows_kernel(args); });
  EXPECT_TRUE(at::equal(own_ids, ids));
  EXPECT_TRUE(at::equal(own_positions, positions));
}

}  // namespace
}  // namespace lamplighter::test
