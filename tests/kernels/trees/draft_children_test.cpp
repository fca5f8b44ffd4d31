#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "kernels/ops.h"
#include "tests/kernels/common/operators.h"

namespace lamplighter::test {
namespace {

// Logits and settings of the filters for draft_children.
struct Drafts {
  at::Tensor logits, guidance, temperature, top_k, top_p, seeds, nodes;

  Drafts(std::mt19937& rng, int64_t vocabulary)
      : logits(random_tensor(rng, {4, 3, vocabulary}, at::kBFloat16, 3)),
        guidance(at::full({2}, 2.5, at::kFloat)),
        temperature(at::full({2}, 0.9, at::kFloat)),
        top_k(at::full({2}, std::max<int64_t>(1, vocabulary / 3), at::kLong)),
        top_p(at::full({2}, pick(rng, 0, 1) == 0 ? 0.9 : 1.0, at::kFloat)),
        seeds(integers({2}, [&](int64_t) { return pick(rng, 0, int64_t{1} << 62); })),
        nodes(integers({3}, [&](int64_t) { return pick(rng, 0, 63); })) {}

  ops::Distributions filtered(at::Device on) const {
    return ops::guide_and_filter(logits.to(on),
                                 {guidance.to(on), temperature.to(on), top_k.to(on), top_p.to(on), "ar"});
  }
  auto drafted(at::Device on, int64_t count, bool sampled) const {
    return ops::draft_children(logits.to(on),
                               {guidance.to(on), temperature.to(on), top_k.to(on), top_p.to(on), "ar"},
                               {seeds.to(on), seeds.to(on), nodes.to(on), count, sampled});
  }
};

// In one call what two do.
void expect_filtered_and_sampled(at::Device on) {
  std::mt19937 rng(12);
  for (int trial = 0; trial < 20; ++trial) {
    const Drafts drafts(rng, trial < 5 ? trial + 1 : pick(rng, 6, 20000));
    const int64_t count = pick(rng, 1, 12);
    const bool sampled = trial % 4 != 0;
    const ops::Distributions rows = drafts.filtered(on);
    const at::Tensor tokens = std::get<0>(ops::sample_children(
        rows, {drafts.seeds.to(on), drafts.seeds.to(on), drafts.nodes.to(on), count, sampled}));
    const auto [own_rows, own_tokens] = drafts.drafted(on, count, sampled);
    EXPECT_TRUE(same_bits(own_rows.statistics, rows.statistics)) << "trial " << trial;
    EXPECT_TRUE(own_tokens.equal(tokens)) << "trial " << trial;
  }
}

TEST(DraftChildren, FiltersAndSamples) {
  expect_filtered_and_sampled(at::kCPU);
}

TEST(DraftChildren, CudaFiltersAndSamples) {
  if (!at::globalContext().hasCUDA()) GTEST_SKIP() << "no CUDA device";
  expect_filtered_and_sampled(at::kCUDA);
}

}  // namespace
}  // namespace lamplighter::test
