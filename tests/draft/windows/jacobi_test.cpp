#include "draft/windows/jacobi.h"

#include <ATen/Parallel.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "tests/decode/toy.h"
#include "tests/decode/toy_methods.h"

namespace lamplighter::test {
namespace {

class JacobiTest : public ::testing::Test {
 protected:
  void SetUp() override { at::set_num_threads(1); }
};

// With one row a window drafts nothing that could differ; with more the fixed point is the same.
TEST_F(JacobiTest, GreedyTokensAreThoseOfAutoregression) {
  for (const bool row_ends : {false, true}) {
    const Toy toy(small_shape(row_ends));
    const Prompts prompts = toy.prompts({0, 1, 2, 3}, true);
    const at::Tensor expected = decode(toy.models(), {}, prompts, four_requests(0), toy.grid());
    for (const char* chain : {"chain-1", "chain-4", "chain-9", "fan-2-1-4", "fan-3-2-6"}) {
      for (const WindowFill fill : {WindowFill::uniform, WindowFill::random, WindowFill::repeat,
                                    WindowFill::sample, WindowFill::above}) {
        std::int64_t cycles = 0;
        const at::Tensor codes = decode(toy.models(), window_method(chain, fill), prompts, four_requests(0),
                                        toy.grid(), [&](const Report&) { return ++cycles > 0; });
        EXPECT_TRUE(at::equal(codes, expected)) << chain;
        EXPECT_LT(cycles, toy.grid().tokens()) << chain;
      }
    }
  }
}

// decode() finishes a cycle in one operator; by parts there is one for every stage.
TEST_F(JacobiTest, TokensAreTheSameInOneOperator) {
  for (const bool row_ends : {false, true}) {
    const Toy toy(small_shape(row_ends));
    const Prompts prompts = toy.prompts({0, 1, 2, 3}, true);
    std::vector<DecodeRequest> requests = four_requests(1);
    requests[1].sampling.temperature = 0;
    requests[2].sampling.top_p = 0.8F;
    for (const char* chain : {"chain-1", "chain-4", "chain-9"}) {
      for (const WindowFill fill :
           {WindowFill::uniform, WindowFill::random, WindowFill::repeat, WindowFill::above}) {
        for (const bool keep : {true, false}) {
          const Method method = window_method(chain, fill, keep);
          std::vector<std::int64_t> cycles(2);
          const at::Tensor codes = decode(toy.models(), method, prompts, requests, toy.grid(),
                                          [&](const Report&) { return ++cycles[0] > 0; });
          const at::Tensor expected = decode_by_parts(toy.models(), method, prompts, requests, toy.grid(),
                                                      [&](DecodeState&, std::int64_t) { ++cycles[1]; });
          EXPECT_TRUE(at::equal(codes, expected)) << chain << ", row ends " << row_ends << ", keep " << keep;
          EXPECT_LE(cycles[0], cycles[1]) << "drafts are accepted alike";
          EXPECT_GE(cycles[0], cycles[1] - 1);
        }
      }
    }
  }
}

// Shortened windows and trees, also where the image stands behind a preview.
TEST_F(JacobiTest, GreedyTokensOfDraftsThatAdaptToo) {
  const Toy toy(small_shape());
  const Prompts prompts = toy.prompts({0, 1, 2, 3}, true);
  std::int64_t more = 0;
  for (const int preview : {0, 3}) {
    Grid grid = toy.grid();
    grid.preview_rows = grid.preview_columns = preview;
    if (preview > 0) grid.rows = 2;
    const at::Tensor expected = decode(toy.models(), {}, prompts, four_requests(0), grid);
    EXPECT_EQ(expected.size(1), grid.tokens());
    const auto cycles = [&](const Method& method) {
      std::int64_t count = 0;
      const at::Tensor codes = decode(toy.models(), method, prompts, four_requests(0), grid,
                                      [&](const Report&) { return ++count > 0; });
      EXPECT_TRUE(at::equal(codes, expected)) << preview;
      return count;
    };
    for (const Method& method : {window_method("chain-9"), dynamic_method(3, 4, 20)}) {
      const std::int64_t adapted = cycles(adapting(method));
      more += adapted - cycles(method);
      EXPECT_LT(adapted, expected.size(1)) << preview;
    }
  }
  EXPECT_GT(more, 0);  // smaller drafts commit fewer tokens
}

TEST_F(JacobiTest, GreedyTokensWithADrafterInFrontToo) {
  const Toy toy(small_shape());
  const Prompts prompts = toy.prompts({0, 1, 2, 3}, true);
  const at::Tensor expected = decode(toy.models(), {}, prompts, four_requests(0), toy.grid());
  for (const std::int64_t front : {1, 2, 4})
    EXPECT_TRUE(
        at::equal(decode(toy.models(), front_method("chain-4", front), prompts, four_requests(0), toy.grid()),
                  expected));
}

// A drafter that fills the whole window is the drafter alone, but for its place in the numbers.
TEST_F(JacobiTest, AWindowFullOfTheDrafterTakesItsCycles) {
  const Toy toy(small_shape());
  const auto cycles = [&](const Method& method) {
    std::int64_t count = 0;
    decode(toy.models(), method, toy.prompts({0, 1, 2, 3}, true), four_requests(1), toy.grid(),
           [&](const Report&) { return ++count > 0; });
    return count;
  };
  EXPECT_EQ(cycles(front_method("chain-4", 4)), cycles(static_method(preset_tree("chain-4"))));
}

// An image does not depend on those beside it.
TEST_F(JacobiTest, ImagesOfABatchAreThoseSampledAlone) {
  const Toy toy(small_shape());
  const std::vector<DecodeRequest> all = four_requests(1);
  const Prompts prompts = toy.prompts({0, 1, 2, 3}, true);
  const Method methods[] = {window_method("chain-5", WindowFill::above),
                            window_method("fan-3-2-5", WindowFill::above), front_method("fan-2-2-5", 2),
                            official_window("fan-3-2-5"), official_window("chain-4")};
  for (const Method& method : methods) {
    const at::Tensor together = decode(toy.models(), method, prompts, all, toy.grid());
    for (std::int64_t image = 0; image < 4; ++image) {
      const at::Tensor alone = decode(toy.models(), method, toy.prompts({image}, true),
                                      {all[static_cast<std::size_t>(image)]}, toy.grid());
      EXPECT_TRUE(at::equal(alone, together.narrow(0, image, 1))) << method.tree->size() << " " << image;
    }
  }
}

// Of equal length, a fan's window commits more tokens a cycle.
TEST_F(JacobiTest, MoreCandidatesTakeFewerCycles) {
  const Toy toy(small_shape());
  const auto cycles = [&](const char* window) {
    std::int64_t count = 0;
    const auto counted = [&](const Report&) { return ++count > 0; };
    decode(toy.models(), window_method(window), toy.prompts({0, 1, 2, 3}, true), four_requests(1), toy.grid(),
           counted);
    return count;
  };
  EXPECT_LT(cycles("fan-5-1-4"), cycles("chain-4"));
  EXPECT_LT(cycles("fan-5-2-4"), cycles("fan-5-1-4"));
}

}  // namespace
}  // namespace lamplighter::test
