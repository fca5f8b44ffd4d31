#include "draft/rows/row_parallel_jacobi.h"

#include <ATen/Parallel.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "draft/rows/verify_rows.h"
#include "tests/decode/loop_distribution.h"
#include "tests/decode/toy_methods.h"
#include "tests/draft/rows/rows_run.h"

namespace lamplighter::test {
namespace {

class RowParallelJacobi : public RowsTest {
 protected:
  // Adds `positions`, committed in one pass, to the lengths of the rows. Where drafts do not see each other,
  // a row may take only what was allowed before the pass.
  static void expect_distance(std::vector<std::int64_t>& rows, const std::vector<std::int64_t>& positions,
                              std::int64_t ahead, bool sees_drafts) {
    const std::vector<std::int64_t> before = rows;
    for (const std::int64_t position : positions)
      EXPECT_EQ(position % kColumns, rows.at(position / kColumns)++);
    for (std::size_t row = 1; row < rows.size(); ++row) {
      if (rows[row] == 0 || before[row - 1] == kColumns) continue;
      EXPECT_LE(rows[row] + ahead, rows[row - 1]) << row;
      if (!sees_drafts && rows[row] > before[row]) {
        EXPECT_LE(rows[row] - 1 + ahead, before[row - 1]) << row;
      }
    }
  }
};

// Two implementations agree: the passes of ZipAR planned beforehand, and found on the way.
TEST_P(RowParallelJacobi, WithoutDraftsIsZipar) {
  for (const std::int64_t ahead : {0, 1, 2, 3, 5, 6}) {
    for (const float temperature : {0.0F, 1.0F}) {
      for (const std::int64_t interval : {-1, 9}) {
        const auto samples = requests(temperature, interval);
        EXPECT_TRUE(at::equal(run(row_windows(ahead, 0), samples), run(zipar_method(ahead), samples)))
            << ahead << " " << temperature << " " << interval;
      }
    }
  }
}

TEST_P(RowParallelJacobi, OneRowAtATimeIsAutoregressionAtTemperatureZero) {
  for (const std::int64_t interval : {-1, 9}) {
    const auto samples = requests(0, interval);
    const at::Tensor expected = run({}, samples);
    for (const bool sees_drafts : {false, true}) {
      for (const std::int64_t window : {1, 3, 9})
        EXPECT_TRUE(at::equal(run(row_windows(kColumns, window, sees_drafts), samples), expected)) << window;
    }
    EXPECT_FALSE(at::equal(run(row_windows(2, 3), samples), expected));
  }
}

TEST_P(RowParallelJacobi, TakesFewerPassesThanZipar) {
  const auto passes = [&](const Method& method) {
    std::int64_t cycles = 0;
    run(method, requests(1), [&](const Report& /*report*/) { return ++cycles > 0; });
    return cycles;
  };
  EXPECT_LT(passes(row_windows(3, 3)), passes(zipar_method(3)));
}

TEST_P(RowParallelJacobi, ImagesOfABatchAreThoseSampledAlone) {
  for (const bool sees_drafts : {false, true}) expect_batch_is_alone(row_windows(2, 3, sees_drafts));
}

// With fixed shapes, as on a device, every pass has the most rows and nodes.
TEST_P(RowParallelJacobi, NodesThatHoldNothingChangeNothing) {
  const auto samples = requests(1);
  for (const bool sees_drafts : {false, true}) {
    const Method method = row_windows(2, 3, sees_drafts);
    at::Tensor order;
    const at::Tensor fixed = decode_by_parts(toy_.models(), method, prompts_, samples, toy_.grid(),
                                             [&](DecodeState& state, std::int64_t /*cycle*/) {
                                               state.run.fixed_shapes = true;
                                               order = state.draft_method->order();
                                             });
    const at::Tensor expected = run(method, samples);
    EXPECT_TRUE(at::equal(fixed, expected.gather(1, order.narrow(1, 0, kRows * kColumns)))) << sees_drafts;
  }
}

// Places are each committed once, every row from left to right and `ahead` codes behind the one above it.
TEST_P(RowParallelJacobi, KeepsRowsApart) {
  for (const bool sees_drafts : {false, true}) {
    for (const std::int64_t ahead : {1, 2, 4}) {
      std::map<std::int64_t, std::vector<std::int64_t>> lengths;
      run(row_windows(ahead, 3, sees_drafts), requests(1), [&](const Report& report) {
        for (const ImageReport& image : report.images) {
          auto& rows = lengths.try_emplace(image.image, kRows, 0).first->second;
          rows[0] = std::max<std::int64_t>(rows[0], 1);  // the prefill's code
          expect_distance(rows, image.positions, ahead, sees_drafts);
        }
        return true;
      });
      for (const auto& [image, rows] : lengths) EXPECT_EQ(rows, std::vector<std::int64_t>(kRows, kColumns));
    }
  }
}

// Three chains of a root and three drafts that the target is sure of: what is accepted of them is what the
// limits say, and so is what goes on from there.
TEST(RowParallelLimits, CountFromTheRowAboveOrFromNothing) {
  constexpr std::int64_t rows = 3, nodes = 4, codes = 12;
  const auto ids = at::dtype(at::kLong);
  Draft draft;
  draft.tokens = at::arange(rows * nodes, ids).unsqueeze(0);
  const at::Tensor limits = at::tensor({6, -1, 1}, ids).unsqueeze(0);
  RunState run;
  run.seeds = run.counters.steps = at::ones({1}, ids);
  run.temperature = at::ones({1});
  // Node n is followed by n + 1, the next draft or, behind the last of a chain, some code.
  const at::Tensor sure = at::eye(codes).roll(1, 1).unsqueeze(0);
  draft.distributions = sure.view({rows, nodes, codes}).narrow(1, 0, nodes - 1).contiguous();
  const auto verified = [&](bool above) {
    draft.kind = ParallelWindows{rows, nodes, rows, nodes, limits, above};
    return verify_rows(run, draft, {}, ops::Distributions(sure), {});
  };
  const auto list = [&](std::initializer_list<std::int64_t> values) {
    return at::tensor(std::vector<std::int64_t>(values), ids).unsqueeze(0);
  };
  const Verified alone = verified(false);
  EXPECT_TRUE(at::equal(alone.accepted, list({3, -1, 1})));
  EXPECT_EQ(alone.walk.count.item<std::int64_t>(), 5);
  EXPECT_TRUE(at::equal(alone.tokens.narrow(1, 0, 6), list({0, 1, 2, 3, 4, 9})));
  EXPECT_EQ(alone.walk.token.item<std::int64_t>(), 10);
  const Verified above = verified(true);
  EXPECT_TRUE(at::equal(above.accepted, list({3, 2, 3})));
  EXPECT_TRUE(at::equal(above.tokens.narrow(1, 0, 11), list({0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 11})));
}

INSTANTIATE_TEST_SUITE_P(Types, RowParallelJacobi, ::testing::Values(at::kFloat, at::kBFloat16),
                         [](const auto& test) { return std::string(c10::toString(test.param)); });

// With one layer, keys and values depend on the codes alone, so the context of a code can be rebuilt: the
// codes that were known before its pass at smaller positions, and the codes of its own row.
class RowParallelContext : public ::testing::Test {
 protected:
  static SyntheticShape shape() {
    SyntheticShape shape = rows_shape();
    shape.layers = 1;
    return shape;
  }
  const Toy toy_{shape()};
  const Prompts prompts_ = toy_.prompts({0}, false);

  // The most probable code behind the last of `rows`, positions and codes in their order.
  std::int64_t likeliest(const std::map<std::int64_t, std::int64_t>& rows) const {
    const std::int64_t before = prompts_.longest(), length = toy_.target.manifest().prompt->length;
    std::vector<std::int64_t> known, codes;
    for (const auto& [position, code] : rows) {
      known.push_back(position);
      codes.push_back(code);
    }
    const std::int64_t all = before + static_cast<std::int64_t>(rows.size());
    const at::Tensor x =
        at::cat({prompts_.rows.narrow(1, 0, before), toy_.target.embed(at::tensor(codes).unsqueeze(0))}, 1);
    const at::Tensor positions =
        at::cat({at::arange(length - before, length), at::tensor(known) + length}).unsqueeze(0);
    at::Tensor cache = toy_.target.make_cache(1, all);
    const at::Tensor hidden =
        toy_.target.forward(x, positions, at::empty({0}, at::kLong), at::zeros({1}, at::kLong), cache).hidden;
    return toy_.target.logits(hidden.narrow(1, all - 1, 1).contiguous()).argmax(-1).item<std::int64_t>();
  }
};

TEST_F(RowParallelContext, IsWhatWasKnownAboveAndTheRowItself) {
  const c10::InferenceMode inference;
  at::set_num_threads(1);
  DecodeRequest greedy;
  greedy.sampling.temperature = 0;
  for (const std::int64_t ahead : {1, 2, 3}) {
    std::map<std::int64_t, std::int64_t> known;
    std::vector<std::int64_t> newest(kRows, -1);  // position of each row's newest code
    decode(toy_.models(), row_windows(ahead, 3), prompts_, {greedy}, toy_.grid(), [&](const Report& report) {
      const ImageReport& image = report.images.front();
      if (image.first) known[0] = image.last_token, newest[0] = 0;
      const auto before = known;
      const auto above = newest;
      for (std::size_t i = 0; i < image.positions.size(); ++i) {
        const std::int64_t position = image.positions[i], row = position / kColumns;
        std::map<std::int64_t, std::int64_t> seen;
        for (const auto& [other, code] : before) {
          if (other < position) seen[other] = code;
        }
        for (std::size_t j = 0; j < i; ++j) {  // of its row, in this pass
          if (image.positions[j] / kColumns == row) seen[image.positions[j]] = image.codes[j];
        }
        if (seen.count(position - 1) == 0) {  // a placeholder
          EXPECT_EQ(position % kColumns, 0);
          seen[position - 1] = before.at(above[static_cast<std::size_t>(row - 2)]);
        }
        EXPECT_EQ(image.codes[i], likeliest(seen)) << "position " << position << ", ahead " << ahead;
        known[position] = image.codes[i];
        newest[static_cast<std::size_t>(row)] = position;
      }
      return true;
    });
    EXPECT_EQ(known.size(), static_cast<std::size_t>(kRows * kColumns));
  }
}

// Where no row is open beside another, the distribution is that of the target whatever is drafted.
TEST(RowParallelDistribution, OfOneRowAtATimeIsThatOfTheTarget) {
  at::set_num_threads(1);
  const Toy toy(run_shape());
  const SamplingOptions sampling = run_sampling();
  const JointDistribution exact = lossless_distribution(toy, sampling);
  for (const bool keep : {false, true}) {
    for (const WindowFill fill : {WindowFill::uniform, WindowFill::above}) {
      const Method method = row_windows(2, 2, keep, fill, keep);
      const JointDistribution counts = counted_distribution(
          toy, sampling, distribution_images(1 << 15), [&](const Prompts& prompts, const auto& samples) {
            return decode(toy.models(), method, prompts, samples, toy.grid());
          });
      EXPECT_TRUE(fits(exact, counts)) << keep;
    }
  }
}

}  // namespace
}  // namespace lamplighter::test
