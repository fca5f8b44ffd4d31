#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <array>
#include <tuple>
#include <vector>

#include "tests/kernels/sampling/emulated_rows.h"

#include "kernels/trees/children_cuda.h"

// The CUDA kernels that sample children on an emulated device against the CPU's operators.
namespace lamplighter::test {
namespace {

using ChildrenEmulatedTest = EmulatedRowsTest;

int64_t scratch_bytes(int64_t vocabulary) {
  return (vocabulary * (children::kScratchPerToken + int64_t{sizeof(float)}) + 63) / 64 * 64;
}

TEST_F(ChildrenEmulatedTest, ChildrenAreThoseOfTheCpu) {
  for (int trial = 0; trial < 16; ++trial) {
    SCOPED_TRACE("trial " + std::to_string(trial));
    const ops::Distributions lazy = rows_of(random_logits(trial, 2, 2), trial).filtered();
    const ops::Distributions plain = ops::probabilities(lazy);
    const ops::Distributions& read = trial % 5 == 4 ? plain : lazy;
    const at::Tensor seeds = integers({2}, [](int64_t i) { return 40 + i; });
    const int64_t count = 1 + trial % 4, vocabulary = lazy.values.size(2);
    const bool sampled = trial % 6 != 5;
    SampleChildrenArgs args = sample_children_args(read, {seeds, seeds, seeds, count, sampled});
    at::Tensor tokens = at::empty({2, 2, count}, at::kLong);
    at::Tensor conditional = at::empty({2, 2, count}, at::kFloat);
    args.tokens = tokens.mutable_data_ptr<int64_t>();
    args.conditional = conditional.mutable_data_ptr<float>();
    const int64_t bytes = scratch_bytes(vocabulary);
    at::Tensor scratch = at::empty({4, bytes}, at::kByte);
    const bool in_shared = trial % 2 == 0;
    on_device(4, kRowThreads, in_shared ? static_cast<size_t>(vocabulary) * sizeof(float) : 0, [&] {
      sample_children_kernel(args, static_cast<char*>(scratch.mutable_data_ptr()), bytes, in_shared);
    });
    const auto [expected, chances] = ops::sample_children(plain, {seeds, seeds, seeds, count, sampled});
    EXPECT_TRUE(tokens.equal(expected)) << tokens << expected;
    EXPECT_TRUE(same_bits(conditional, chances));
  }
}

// The ways in which draft_children runs on a device.
class Drafts {
 public:
  Drafts(const ops::Distributions& rows, GuideAndFilterArgs filter, const ops::ChildSampling& samples)
      : rows_(rows),
        filter_(filter),
        sample_(sample_children_args(rows, samples)),
        blocks_(sample_.images * sample_.rows.rows),
        bytes_(scratch_bytes(sample_.rows.vocabulary)),
        lists_(at::empty({blocks_, bytes_}, at::kByte)),
        memory_(at::empty({blocks_, 2 * sample_.rows.vocabulary}, at::kFloat)),
        tokens_(at::empty({blocks_, sample_.count}, at::kLong)) {
    sample_.tokens = tokens_.mutable_data_ptr<int64_t>();
  }

  void run_in_blocks(bool in_shared) {
    const size_t shared = in_shared ? 2 * static_cast<size_t>(sample_.rows.vocabulary) * sizeof(float) : 0;
    on_device(blocks_, kRowThreads, shared, [&] {
      draft_children_kernel(filter_, sample_, lists(), bytes_, in_shared ? nullptr : memory());
    });
  }

  template <class Shape>
  void run_in_clusters() {
    emulated::launch(
        {static_cast<unsigned>(blocks_) * Shape::kBlocks}, {Shape::kThreads},
        sizeof(sampling::ClusterStorage<Shape>),
        [&] { draft_children_cluster_kernel<Shape>(filter_, sample_, lists(), bytes_, memory()); },
        Shape::kBlocks);
  }

  // Tokens and statistics of the last run, which are gone then.
  std::array<at::Tensor, 2> results() {
    std::array<at::Tensor, 2> copies{tokens_.clone(), rows_.statistics.clone()};
    tokens_.fill_(-9);
    rows_.statistics.fill_(-9);
    return copies;
  }

 private:
  char* lists() { return static_cast<char*>(lists_.mutable_data_ptr()); }
  float* memory() { return memory_.mutable_data_ptr<float>(); }

  const ops::Distributions& rows_;
  GuideAndFilterArgs filter_;
  SampleChildrenArgs sample_;
  int64_t blocks_, bytes_;
  at::Tensor lists_, memory_, tokens_;
};

TEST_F(ChildrenEmulatedTest, DraftedChildrenAreFilteredAndSampled) {
  for (int trial = 0; trial < 36; ++trial) {
    SCOPED_TRACE("trial " + std::to_string(trial));
    Rows rows = rows_of(random_logits(trial, 2, 2), trial);
    if (trial == 7) rows.logits[0][1][0].fill_(std::numeric_limits<float>::quiet_NaN());
    if (trial == 13) rows.logits[0][0].fill_(-std::numeric_limits<float>::infinity());
    const at::Tensor seeds = integers({2}, [](int64_t i) { return 40 + i; });
    GuideAndFilterArgs filter = guide_and_filter_args(rows.logits, rows.filtering());
    const ops::Distributions filtered(rows.logits, filter_statistics(filter, rows.logits));
    const ops::ChildSampling samples{seeds, seeds, seeds, 1 + trial % 12, trial % 6 != 5};
    const auto [distributions, tokens] = ops::draft_children(rows.logits, rows.filtering(), samples);
    const auto expect_alike = [&, &rows_of_cpu = distributions, &tokens_of_cpu = tokens](Drafts& drafts) {
      const auto [got, statistics] = drafts.results();
      EXPECT_TRUE(got.equal(tokens_of_cpu.flatten(0, 1))) << got << tokens_of_cpu;
      expect_statistics(statistics, rows_of_cpu.statistics);
    };
    Drafts drafts(filtered, filter, samples);
    drafts.run_in_blocks(trial % 3 != 2);
    expect_alike(drafts);
    drafts.run_in_clusters<sampling::RowShape<4, 256, 8>>();
    expect_alike(drafts);
    drafts.run_in_clusters<sampling::RowShape<1, 256, 32>>();
    expect_alike(drafts);
  }
}

}  // namespace
}  // namespace lamplighter::test
