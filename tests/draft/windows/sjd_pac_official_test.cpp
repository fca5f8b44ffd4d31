#include <ATen/Parallel.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <memory>

#include "draft/windows/sjd_pac_official.h"
#include "tests/decode/loop_distribution.h"
#include "tests/decode/toy_methods.h"
#include "tests/draft/wrapped.h"

namespace lamplighter::test {
namespace {

class SjdPacOfficialTest : public ::testing::Test {
 protected:
  void SetUp() override { at::set_num_threads(1); }
};

// Compares the window that SjdPacOfficial keeps with the cycle before: the positions behind the accepted
// path by first children, and where these end, by the chain of first candidates.
class Watched : public Wrapped {
 public:
  using Wrapped::Wrapped;

  static inline std::int64_t kept_drafts = 0, new_drafts = 0, off_the_chain = 0;

  void update(const Draft& draft, const Scores& scores, const Verified& verified,
              const RunState& run) override {
    Wrapped::update(draft, scores, verified, run);
    if (draft.tokens.size(1) == 1) return;
    const at::Tensor target = ops::probabilities(verified.target);
    const at::Tensor tests =
        ops::uniforms(run.seeds, run.counters.steps, ops::Purpose::accept, draft.tokens.size(1));
    for (std::int64_t image = 0; image < run.images(); ++image) {
      const auto count = verified.walk.count[image].item<std::int64_t>();
      const auto end = verified.walk.path[image][count].item<std::int64_t>();
      compare(draft, target[image], tests[image], image, count, end);
    }
  }

 private:
  static std::int64_t first_child(const Draft& draft, std::int64_t node) {
    for (std::int64_t child = node + 1; node >= 0 && child < draft.tokens.size(1); ++child)
      if (draft.nodes.parents[0][child].item<std::int64_t>() == node) return child;
    return -1;
  }

  void compare(const Draft& draft, const at::Tensor& target, const at::Tensor& tests, std::int64_t image,
               std::int64_t count, std::int64_t end) {
    const at::Tensor tokens = (*per_image()[0].tensor)[image], rows = (*per_image()[1].tensor)[image],
                     others = (*per_image()[2].tensor)[image];
    const std::int64_t slots = tokens.size(0);
    std::int64_t node = end, on_chain = 0;
    for (std::int64_t depth = 0; depth < count; ++depth) on_chain = first_child(draft, on_chain);
    if (on_chain != end) ++off_the_chain;
    for (std::int64_t slot = 0, depth = count + 1; slot < slots; ++slot, ++depth) {
      const auto token = tokens[slot].item<std::int64_t>();
      if (depth >= slots) {
        EXPECT_EQ(token, -1);
        EXPECT_TRUE(others.numel() == 0 || others[slot].max().item<std::int64_t>() == -1);
        continue;
      }
      node = first_child(draft, node);
      on_chain = first_child(draft, on_chain);
      const std::int64_t tells = node >= 0 ? node : on_chain, child = first_child(draft, tells);
      EXPECT_TRUE(at::equal(rows[slot], target[tells]));
      ASSERT_GE(token, 0);
      const auto drafted = child < 0 ? -1 : draft.tokens[image][child].item<std::int64_t>();
      const bool stays =
          drafted >= 0 &&
          tests[child].item<double>() * draft.distributions.values[image][depth][drafted].item<double>() <
              target[tells][drafted].item<double>();
      ++(stays ? kept_drafts : new_drafts);
      if (drafted >= 0) {
        EXPECT_EQ(token == drafted, stays);
      }
    }
  }
};

std::unique_ptr<DraftMethod> make_watched(const Method& method, const Models& models) {
  return std::make_unique<Watched>(make_sjd_pac_official(method, models));
}

TEST_F(SjdPacOfficialTest, WindowsHoldWhatTheirCycleLeft) {
  const Toy toy(small_shape());
  for (const char* window : {"fan-2-1-4", "fan-3-2-5", "fan-2-3-4", "fan-2-2-2", "chain-4"}) {
    SCOPED_TRACE(window);
    Method method = official_window(window);
    method.draft_method = &make_watched;
    decode(toy.models(), method, toy.prompts({0, 1, 2, 3}, true), four_requests(1), toy.grid());
  }
  EXPECT_GT(Watched::kept_drafts, 20);
  EXPECT_GT(Watched::new_drafts, 20);
  EXPECT_GT(Watched::off_the_chain, 5);
}

// The method is lossy, and the test can see it.
TEST_F(SjdPacOfficialTest, IsNotLossless) {
  const Toy toy(run_shape());
  const SamplingOptions sampling = run_sampling();
  for (const char* window : {"fan-2-1-3", "fan-2-2-3"}) {
    const SampledDistribution sampled = sampled_distribution(
        toy, toy.models(), official_window(window), sampling, distribution_images(std::int64_t{1} << 15));
    EXPECT_FALSE(fits(lossless_distribution(toy, sampling), sampled.counts)) << window;
  }
}

}  // namespace
}  // namespace lamplighter::test
