#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/kernels/common/kernel_test.h"
#include "tests/kernels/step/ar_step_cases.h"

// ar_step on the CPU: what guide_and_filter, verify_tree of a root alone and commit_tokens do one after the
// other.
namespace lamplighter::test {
namespace {

using ::testing::HasSubstr;

class ArStepTest : public KernelTest {};

TEST_P(ArStepTest, IsWhatTheOperatorsThatItJoinsDo) {
  for (int trial = 0; trial < 91; ++trial) {
    SCOPED_TRACE("trial " + std::to_string(trial));
    ArStepCase got = ar_step_case(rng_, trial, pick(rng_, 1, 4), pick(rng_, 1, 3000));
    if (dtype() == at::kBFloat16) got.step.logits = got.step.logits.to(dtype());
    ArStepCase apart = got.copy();
    ops::ar_step(got.step, got.state);
    apart.run_apart();
    const std::vector<at::Tensor*> a = got.changed(), b = apart.changed();
    for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(a[i]->equal(*b[i])) << "tensor " << i;
  }
}

// Images are independent of those beside them.
TEST_P(ArStepTest, DoesNotDependOnOtherImages) {
  ArStepCase both = ar_step_case(rng_, 2, 2, 700), second = both.copy();
  both.state.steps.fill_(3);
  second.state.steps.fill_(3);
  second.step.logits[0].fill_(0);
  second.step.seeds[0].fill_(1);
  ops::ar_step(both.step, both.state);
  ops::ar_step(second.step, second.state);
  EXPECT_TRUE(both.state.codes[1].equal(second.state.codes[1]));
  EXPECT_TRUE(both.state.report[1].equal(second.state.report[1]));
}

TEST(ArStepErrorsTest, NamesWhatDoesNotFit) {
  std::mt19937 rng(3);
  const ArStepCase fits = ar_step_case(rng, 2, 2, 40);
  const auto message = [&](auto change) {
    ArStepCase changed = fits.copy();
    change(changed);
    return message_of([&] { ops::ar_step(changed.step, changed.state); });
  };
  EXPECT_THAT(message([](auto& c) {
                c.step.logits = c.step.logits.expand({2, 3, 40}).contiguous();
              }),
              HasSubstr("ar_step: logits have shape [2, 3, 40], expected one row for each sequence"));
  EXPECT_THAT(message([](auto& c) { c.step.seeds = c.step.seeds[0].unsqueeze(0); }),
              HasSubstr("ar_step: seeds has shape [1], expected [2]"));
  EXPECT_THAT(message([](auto& c) { c.state.steps.fill_(21); }),
              HasSubstr("ar_step: image 0 has 21 tokens, expected 0..20"));
  EXPECT_THAT(message([](auto& c) { c.state.codes = c.state.codes.narrow(1, 0, 20).contiguous(); }),
              HasSubstr("ar_step: codes have 20 columns, expected 20 and the 1 of a path"));
}

INSTANTIATE_TEST_SUITE_P(, ArStepTest, all_cases(), case_name);

}  // namespace
}  // namespace lamplighter::test
