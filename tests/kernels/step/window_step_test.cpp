#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/kernels/common/kernel_test.h"
#include "tests/kernels/step/window_step_cases.h"

// window_step on the CPU: what the operators that it joins do one after the other, over several cycles.
namespace lamplighter::test {
namespace {

using ::testing::HasSubstr;

class WindowStepTest : public KernelTest {};

TEST_P(WindowStepTest, IsWhatTheOperatorsThatItJoinsDo) {
  int64_t accepted = 0, kept = 0;
  for (int trial = 0; trial < 84; ++trial) {
    WindowStepCase got =
        window_step_case(rng_, trial, pick(rng_, 1, 3), pick(rng_, 1, 600), pick(rng_, 2, 9));
    for (int cycle = 0; cycle < window_cycles(trial); ++cycle) {
      SCOPED_TRACE("trial " + std::to_string(trial) + " cycle " + std::to_string(cycle));
      got.score(rng_, trial, 0.3F);
      WindowStepCase apart = got.copy();
      const ops::WindowRows rows = ops::window_step(got.step, got.window, got.state);
      const ops::WindowRows expected = apart.run_apart();
      EXPECT_TRUE(rows.rows.equal(expected.rows)) << rows.rows << expected.rows;
      EXPECT_TRUE(rows.count.equal(expected.count));
      const std::vector<at::Tensor*> a = got.changed(), b = apart.changed();
      for (size_t i = 0; i < a.size(); ++i)
        ASSERT_TRUE(a[i]->equal(*b[i])) << "tensor " << i << "\n" << *a[i] << "\n" << *b[i];
      got.apart = apart.apart;
      accepted += expected.count.sum().item<int64_t>();
      kept += got.window.guessed.logical_not().sum().item<int64_t>();
    }
  }
  EXPECT_GT(accepted, 100);
  EXPECT_GT(kept, 100);
}

// In place: the pass has the tokens of the window.
TEST_P(WindowStepTest, ReadsTheWindowItself) {
  WindowStepCase apart = window_step_case(rng_, 1, 2, 50, 5);
  for (int cycle = 0; cycle < 3; ++cycle) {
    apart.score(rng_, 1, 0.2F);
    WindowStepCase same = apart.copy();
    same.step.tokens = same.window.tokens;
    ops::window_step(apart.step, apart.window, apart.state);
    ops::window_step(same.step, same.window, same.state);
    EXPECT_TRUE(same.window.tokens.equal(apart.window.tokens));
    EXPECT_TRUE(same.state.codes.equal(apart.state.codes));
    EXPECT_TRUE(same.state.report.equal(apart.state.report));
  }
}

TEST(WindowStepErrorsTest, NamesWhatDoesNotFit) {
  std::mt19937 rng(3);
  WindowStepCase fits = window_step_case(rng, 2, 2, 40, 4);
  fits.score(rng, 2, 0.1F);
  const auto message = [&](auto change) {
    WindowStepCase changed = fits.copy();
    change(changed);
    return message_of([&] { ops::window_step(changed.step, changed.window, changed.state); });
  };
  EXPECT_THAT(message([](auto& c) { c.step.logits = c.step.logits.narrow(1, 0, 1).contiguous(); }),
              HasSubstr("window_step: logits have shape [2, 1, 40], expected 2..64 rows"));
  EXPECT_THAT(message([](auto& c) { c.step.fill = WindowFill::sample; }),
              HasSubstr("window_step: fill is sample"));
  EXPECT_THAT(message([](auto& c) { c.step.codes = 41; }),
              HasSubstr("window_step: codes is 41, expected 1..40"));
  EXPECT_THAT(message([](auto& c) { c.window.masses = c.window.masses.to(at::kFloat); }),
              HasSubstr("window_step: masses has dtype"));
  EXPECT_THAT(message([](auto& c) { c.state.steps.fill_(81); }),
              HasSubstr("window_step: image 0 has 81 tokens, expected 0..80"));
}

INSTANTIATE_TEST_SUITE_P(, WindowStepTest, all_cases(), case_name);

}  // namespace
}  // namespace lamplighter::test
