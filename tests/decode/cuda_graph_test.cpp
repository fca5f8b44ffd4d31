#include <ATen/Context.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "decode/recorder.h"
#include "decode/replay.h"
#include "tests/decode/toy.h"
#include "tests/decode/toy_methods.h"
#include "tests/draft/drafters/random_drafter.h"

// Cycles that are captured as a CUDA graph and replayed.
namespace lamplighter::test {
namespace {

constexpr std::int64_t kGraphImages = 5;

class CudaGraph : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!at::hasCUDA()) GTEST_SKIP() << "no CUDA device";
  }
};

DecodeRequest graph_request(std::int64_t number) {
  SamplingOptions sampling;
  sampling.cfg_scale = 2.5F;
  sampling.cfg_interval = number == 3 ? 4 : -1;
  sampling.temperature = 0.8F + 0.1F * static_cast<float>(number);
  return {sampling, 90 + static_cast<std::uint64_t>(number)};
}

SyntheticShape small_rows(bool row_ends) {
  SyntheticShape shape;
  shape.vocabulary = 12;
  shape.rows = shape.columns = 6;
  shape.row_ends = row_ends;
  shape.weight_scale = 1.5;
  return shape;
}

// The codes of more images than slots.
std::vector<std::vector<std::int32_t>> sampled(const Toy& toy, const Models& models, const Method& method,
                                               bool graph) {
  const Grid grid = toy.grid();
  RunShape shape;
  shape.grid = &grid;
  shape.images = 2;
  shape.prompt_length = toy.target.manifest().prompt->length;
  shape.guided = shape.varying = true;
  shape.graph = graph;
  Recorder recorder(method);
  decode(models, method, shape, Queue{toy, kGraphImages, graph_request}, [&](const Report& report) {
    recorder.add(report);
    return true;
  });
  std::vector<std::vector<std::int32_t>> codes;
  for (std::int64_t image = 0; image < kGraphImages; ++image) codes.push_back(recorder.take(image).codes);
  return codes;
}

void expect_same_tokens(const Toy& toy, const Models& models, const Method& method) {
  const auto codes = sampled(toy, models, method, true);
  EXPECT_EQ(codes, sampled(toy, models, method, false));
  for (const auto& image : codes) EXPECT_EQ(image.size(), 36U);
}

TEST_F(CudaGraph, SamplesTheTokensOfARunWithout) {
  const at::Tensor neighbours = next_codes(small_rows(false).vocabulary).to(kCuda);
  for (const bool row_ends : {false, true}) {
    const Toy toy(small_rows(row_ends), at::kBFloat16, kCuda);
    for (const Method& method :
         {Method{}, static_method(bushy_tree()), static_method(preset_tree("chain-3")),
          relaxed_method(bushy_tree(), "lantern++", 2, 3, neighbours), self_method(bushy_tree(), 1),
          dynamic_method(2, 3, 7), window_method("chain-7"), window_method("fan-3-2-7"),
          front_method("chain-7", 2), zipar_method(2), row_windows(2, 3), row_windows(2, 3, true)}) {
      if (row_ends && !method.tree && !method.options.dynamic_nodes) continue;  // refused by resolve_method
      expect_same_tokens(toy, toy.models(), method);
    }
  }
}

TEST_F(CudaGraph, SamplesTheTokensOfARunWithoutWithEveryDrafter) {
  for (const bool row_ends : {false, true}) {
    const Toy toy(small_rows(row_ends), at::kFloat, kCuda);
    for (const auto& [kind, how] : kinds()) {
      SCOPED_TRACE(kind);
      const DraftModel drafter = random_drafter(toy.target, kind, 1);
      Method chain = heads_method(kind, preset_tree("chain-3"));
      for (const bool keep : {false, true}) {
        chain.window.keep = keep;  // of windows of drafts alone
        expect_same_tokens(toy, {&toy.target, &drafter}, chain);
      }
      if (kind != "refine")
        expect_same_tokens(toy, {&toy.target, &drafter}, heads_method(kind, bushy_tree()));
    }
  }
}

TEST_F(CudaGraph, RepeatsItsWork) {
  Replay replay({c10::kCUDA, 0}, true);
  at::Tensor counter = at::zeros({3}, at::dtype(at::kLong).device(c10::kCUDA));
  for (int call = 0; call < 10; ++call) replay.run([&] { counter.add_(1); });
  EXPECT_TRUE(at::equal(counter.cpu(), at::full({3}, 10, at::kLong)));
  EXPECT_TRUE(replay.captures());
  EXPECT_EQ(replay.kernels(), 1);
}

// Work that waits for the device cannot be captured; it runs all the same, and other work can be captured.
TEST_F(CudaGraph, GivesWayWhereCaptureFails) {
  std::vector<std::string> notes;
  Replay replay({c10::kCUDA, 0}, true, [&](const std::string& text) { notes.push_back(text); });
  at::Tensor counter = at::zeros({1}, at::dtype(at::kLong).device(c10::kCUDA));
  std::int64_t seen = 0;
  for (int call = 0; call < 10; ++call) {
    replay.run([&] {
      counter.add_(1);
      seen = counter.item<std::int64_t>();
    });
  }
  EXPECT_EQ(seen, 10);
  EXPECT_FALSE(replay.captures());
  EXPECT_EQ(replay.kernels(), 0);
  EXPECT_THAT(notes, ::testing::ElementsAre(::testing::HasSubstr("not captured as a CUDA graph")));
  Replay other({c10::kCUDA, 0}, true);
  for (int call = 0; call < 10; ++call) other.run([&] { counter.add_(1); });
  EXPECT_EQ(counter.item<std::int64_t>(), 20);
  EXPECT_EQ(other.kernels(), 1);
}

}  // namespace
}  // namespace lamplighter::test
