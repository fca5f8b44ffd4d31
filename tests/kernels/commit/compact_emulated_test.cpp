#include "tests/kernels/common/emulated_device.h"

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <numeric>

#include "kernels/commit/compact_args.h"
#include "kernels/commit/compact_cuda.h"
#include "kernels/ops.h"
#include "tests/kernels/common/operators.h"

// CUDA's compact_cache on an emulated device: one launch for all layers, the bits of the CPU operator.
namespace lamplighter::test {
namespace {

template <class Word>
void launch(const CompactArgs& args) {
  const int64_t words = args.row_bytes / static_cast<int64_t>(sizeof(Word));
  const int64_t threads = args.planes * args.sequences * args.kv_heads * words;
  const int64_t blocks = (threads + kCompactThreads - 1) / kCompactThreads;
  emulated::launch({static_cast<unsigned>(blocks)}, {kCompactThreads}, 0,
                   [&] { compact_kernel<Word>(args); });
}

TEST(CompactEmulatedTest, MovesTheRowsOfTheCpu) {
  std::mt19937 rng(3);
  for (int trial = 0; trial < 60; ++trial) {
    const int64_t images = pick(rng, 1, 3), pairs = pick(rng, 1, 2), nodes = pick(rng, 12, 60);
    const int64_t width = pick(rng, 1, 12), head_dim = trial % 2 == 0 ? 16 : 6;
    const at::Tensor cache =
        random_tensor(rng, {3, 2, images * pairs, 2, 20 + nodes, head_dim}, at::kBFloat16);
    const at::Tensor lengths = integers({images * pairs}, [&](int64_t) { return pick(rng, 0, 20); });
    const at::Tensor count = integers({images}, [&](int64_t) { return pick(rng, -1, width - 1); });
    std::vector<int64_t> rows(static_cast<size_t>(nodes - 1)), path;
    std::iota(rows.begin(), rows.end(), 1);
    for (int64_t i = 0; i < images; ++i) {
      path.push_back(0);
      std::sample(rows.begin(), rows.end(), std::back_inserter(path), width - 1, rng);
    }
    const at::Tensor paths =
        integers({images, width}, [&](int64_t i) { return path[static_cast<size_t>(i)]; });
    at::Tensor expected = cache.clone(), got = cache.clone();
    ops::compact_cache(expected, lengths, paths, count);
    const CompactArgs args = compact_args(got, lengths, paths, count);
    if (head_dim == 16) {
      launch<Pack<uint32_t, 4>>(args);
    } else {
      launch<uint16_t>(args);
    }
    EXPECT_TRUE(same_bits(got, expected)) << "trial " << trial;
  }
}

}  // namespace
}  // namespace lamplighter::test
