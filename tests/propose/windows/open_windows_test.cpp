#include "propose/windows/open_windows.h"

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

#include "decode/open_rows.h"
#include "tests/decode/loop_law.h"
#include "tests/decode/toy_methods.h"
#include "tests/propose/windows/rows_run.h"

namespace lamplighter::test {
namespace {

class WindowsTest : public RowsTest {
 protected:
  // What `places` make of rows of so many codes, in one pass. Without drafts in sight of each other, what a
  // row takes must have been allowed before the pass.
  static void expect_distance(std::vector<std::int64_t>& rows, const std::vector<std::int64_t>& places,
                              std::int64_t ahead, bool across) {
    const std::vector<std::int64_t> before = rows;
    for (const std::int64_t place : places) EXPECT_EQ(place % kColumns, rows.at(place / kColumns)++);
    for (std::size_t row = 1; row < rows.size(); ++row) {
      if (rows[row] == 0 || before[row - 1] == kColumns) continue;
      EXPECT_LE(rows[row] + ahead, rows[row - 1]) << row;
      if (!across && rows[row] > before[row]) {
        EXPECT_LE(rows[row] - 1 + ahead, before[row - 1]) << row;
      }
    }
  }
};

// Two bodies for one thing: the passes of ZipAR planned beforehand, and found on the way.
TEST_P(WindowsTest, WithoutSlotsAreOpenRows) {
  for (const std::int64_t ahead : {0, 1, 2, 3, 5, 6}) {
    for (const float temperature : {0.0F, 1.0F}) {
      for (const std::int64_t interval : {-1, 9}) {
        const auto draws = requests(temperature, interval);
        EXPECT_TRUE(at::equal(run(windows_method(ahead, 0), draws), run(zipar_method(ahead), draws)))
            << ahead << " " << temperature << " " << interval;
      }
    }
  }
}

TEST_P(WindowsTest, OneRowAtATimeIsAutoregressionAtTemperatureZero) {
  for (const std::int64_t interval : {-1, 9}) {
    const auto draws = requests(0, interval);
    const at::Tensor expected = run({}, draws);
    for (const bool across : {false, true}) {
      for (const std::int64_t slots : {1, 3, 9})
        EXPECT_TRUE(at::equal(run(windows_method(kColumns, slots, across), draws), expected)) << slots;
    }
    EXPECT_FALSE(at::equal(run(windows_method(2, 3), draws), expected));
  }
}

TEST_P(WindowsTest, TakeFewerPassesThanOpenRows) {
  const auto passes = [&](const Method& method) {
    std::int64_t cycles = 0;
    run(method, requests(1), [&](const Report& /*report*/) { return ++cycles > 0; });
    return cycles;
  };
  EXPECT_LT(passes(windows_method(3, 3)), passes(zipar_method(3)));
}

TEST_P(WindowsTest, PicturesOfABatchAreThoseDrawnAlone) {
  for (const bool across : {false, true}) expect_batch_is_alone(windows_method(2, 3, across));
}

// As on a device, where every pass has the most rows and nodes.
TEST_P(WindowsTest, NodesThatHoldNothingChangeNothing) {
  const auto draws = requests(1);
  for (const bool across : {false, true}) {
    const Method method = windows_method(2, 3, across);
    at::Tensor order;
    const at::Tensor fixed = decode_by_parts(toy_.models(), method, prompts_, draws, toy_.grid(),
                                             [&](DecodeState& state, std::int64_t /*cycle*/) {
                                               state.fixed_shapes = true;
                                               order = state.proposer->order();
                                             });
    const at::Tensor expected = run(method, draws);
    EXPECT_TRUE(at::equal(fixed, expected.gather(1, order.narrow(1, 0, kRows * kColumns)))) << across;
  }
}

// Places are each committed once, every row from left to right and `ahead` codes behind the one above it.
TEST_P(WindowsTest, KeepTheirDistance) {
  for (const bool across : {false, true}) {
    for (const std::int64_t ahead : {1, 2, 4}) {
      std::map<std::int64_t, std::vector<std::int64_t>> lengths;
      run(windows_method(ahead, 3, across), requests(1), [&](const Report& report) {
        for (const ImageReport& image : report.images) {
          auto& rows = lengths.try_emplace(image.image, kRows, 0).first->second;
          rows[0] = std::max<std::int64_t>(rows[0], 1);  // the prefill's code
          expect_distance(rows, image.places, ahead, across);
        }
        return true;
      });
      for (const auto& [image, rows] : lengths) EXPECT_EQ(rows, std::vector<std::int64_t>(kRows, kColumns));
    }
  }
}

// Three chains of a root and three drafts that the target is sure of: what is accepted of them is what the
// limits say, and so is what goes on from there.
TEST(WindowsLimits, CountFromTheRowAboveOrFromNothing) {
  constexpr std::int64_t rows = 3, nodes = 4, codes = 12;
  const auto ids = at::dtype(at::kLong);
  Draft draft;
  draft.tokens = at::arange(rows * nodes, ids).unsqueeze(0);
  draft.windows = {rows, nodes, rows, nodes};
  draft.limits = at::tensor({6, -1, 1}, ids).unsqueeze(0);
  RunState run;
  run.seeds = run.steps = at::ones({1}, ids);
  run.temperature = at::ones({1});
  // Node n is followed by n + 1, the next draft or, behind the last of a chain, some code.
  const at::Tensor sure = at::eye(codes).roll(1, 1).unsqueeze(0);
  draft.distributions = sure.view({rows, nodes, codes}).narrow(1, 0, nodes - 1).contiguous();
  const auto judged = [&](bool above) {
    draft.above = above;
    return judge_windows(run, draft, ops::Distributions(sure), {});
  };
  const auto list = [&](std::initializer_list<std::int64_t> values) {
    return at::tensor(std::vector<std::int64_t>(values), ids).unsqueeze(0);
  };
  const Judged alone = judged(false);
  EXPECT_TRUE(at::equal(alone.accepted, list({3, -1, 1})));
  EXPECT_EQ(alone.count.item<std::int64_t>(), 5);
  EXPECT_TRUE(at::equal(alone.chain.narrow(1, 0, 6), list({0, 1, 2, 3, 4, 9})));
  EXPECT_EQ(alone.token.item<std::int64_t>(), 10);
  const Judged above = judged(true);
  EXPECT_TRUE(at::equal(above.accepted, list({3, 2, 3})));
  EXPECT_TRUE(at::equal(above.chain.narrow(1, 0, 11), list({0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 11})));
}

INSTANTIATE_TEST_SUITE_P(Types, WindowsTest, ::testing::Values(at::kFloat, at::kBFloat16),
                         [](const auto& test) { return std::string(c10::toString(test.param)); });

// Keys and values of one layer are those of the codes alone, so what a code was decided from can be put
// together afresh: the codes that were there before its pass at smaller places, and those of its own row.
class WindowsContext : public ::testing::Test {
 protected:
  static SyntheticShape shape() {
    SyntheticShape shape = rows_shape();
    shape.layers = 1;
    return shape;
  }
  const Toy toy_{shape()};
  const Prompts prompts_ = toy_.prompts({0}, false);

  // The most probable code behind the last of `rows`, places and codes in their order.
  std::int64_t likeliest(const std::map<std::int64_t, std::int64_t>& rows) const {
    const std::int64_t before = prompts_.longest(), length = toy_.target.manifest().prompt->length;
    std::vector<std::int64_t> places, codes;
    for (const auto& [place, code] : rows) {
      places.push_back(place);
      codes.push_back(code);
    }
    const std::int64_t all = before + static_cast<std::int64_t>(rows.size());
    const at::Tensor x =
        at::cat({prompts_.rows.narrow(1, 0, before), toy_.target.embed(at::tensor(codes).unsqueeze(0))}, 1);
    const at::Tensor positions =
        at::cat({at::arange(length - before, length), at::tensor(places) + length}).unsqueeze(0);
    at::Tensor cache = toy_.target.make_cache(1, all);
    const at::Tensor hidden =
        toy_.target.forward(x, positions, at::empty({0}, at::kLong), at::zeros({1}, at::kLong), cache).hidden;
    return toy_.target.logits(hidden.narrow(1, all - 1, 1).contiguous()).argmax(-1).item<std::int64_t>();
  }
};

TEST_F(WindowsContext, IsWhatWasKnownAboveAndTheRowItself) {
  const c10::InferenceMode inference;
  at::set_num_threads(1);
  DecodeRequest greedy;
  greedy.sampling.temperature = 0;
  for (const std::int64_t ahead : {1, 2, 3}) {
    std::map<std::int64_t, std::int64_t> known;
    std::vector<std::int64_t> newest(kRows, -1);  // place of each row's newest code
    decode(toy_.models(), windows_method(ahead, 3), prompts_, {greedy}, toy_.grid(),
           [&](const Report& report) {
             const ImageReport& image = report.images.front();
             if (image.is_first()) known[0] = image.root, newest[0] = 0;
             const auto before = known;
             const auto above = newest;
             for (std::size_t i = 0; i < image.places.size(); ++i) {
               const std::int64_t place = image.places[i], row = place / kColumns;
               std::map<std::int64_t, std::int64_t> seen;
               for (const auto& [other, code] : before) {
                 if (other < place) seen[other] = code;
               }
               for (std::size_t j = 0; j < i; ++j) {  // of its row, in this pass
                 if (image.places[j] / kColumns == row) seen[image.places[j]] = image.codes[j];
               }
               if (seen.count(place - 1) == 0) {  // a stand-in
                 EXPECT_EQ(place % kColumns, 0);
                 seen[place - 1] = before.at(above[static_cast<std::size_t>(row - 2)]);
               }
               EXPECT_EQ(image.codes[i], likeliest(seen)) << "place " << place << ", ahead " << ahead;
               known[place] = image.codes[i];
               newest[static_cast<std::size_t>(row)] = place;
             }
             return true;
           });
    EXPECT_EQ(known.size(), static_cast<std::size_t>(kRows * kColumns));
  }
}

// Where no row is open beside another, the law is that of the target whatever is drafted.
TEST(WindowsLaw, OfOneRowAtATimeIsThatOfTheTarget) {
  at::set_num_threads(1);
  const Toy toy(law_shape());
  const SamplingOptions sampling = law_sampling();
  const Law exact = exact_law(toy, sampling);
  for (const bool keep : {false, true}) {
    for (const WindowFill fill : {WindowFill::uniform, WindowFill::above}) {
      const Method method = windows_method(2, 2, keep, fill, keep);
      const Law counts =
          counted_law(toy, sampling, law_pictures(1 << 15), [&](const Prompts& prompts, const auto& draws) {
            return decode(toy.models(), method, prompts, draws, toy.grid());
          });
      EXPECT_TRUE(fits(exact, counts)) << keep;
    }
  }
}

}  // namespace
}  // namespace lamplighter::test
