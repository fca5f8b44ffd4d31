#include <ATen/Context.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <ostream>

#include "lamplighter/pipeline.h"
#include "tests/decode/loop_distribution.h"
#include "tests/decode/toy_methods.h"
#include "tests/draft/drafters/random_drafter.h"

// The decode loop on a CUDA device: images follow the distribution of the target, and the most probable
// images equal the CPU's. Skipped where no device is found.
namespace lamplighter::test {
namespace {

constexpr std::int64_t kSampledImages = std::int64_t{1} << 16;
constexpr std::int64_t kSlots = std::int64_t{1} << 11;

struct CudaCase {
  std::string name;
  Method method;
  bool row_ends = false;
  const char* drafter = nullptr;  // of the kinds in random_drafter.h; null: the toy's own, or none
};

void PrintTo(const CudaCase& test, std::ostream* out) {
  *out << test.name;
}

class CudaLoop : public ::testing::TestWithParam<CudaCase> {
 protected:
  void SetUp() override {
    if (!at::globalContext().hasCUDA()) GTEST_SKIP() << "no CUDA device";
  }

  static at::Tensor run(const Toy& toy, const std::vector<std::int64_t>& numbers,
                        const std::vector<DecodeRequest>& requests) {
    const std::optional<DraftModel> drafter = drafter_of(toy);
    return decode(models(toy, drafter), GetParam().method, toy.prompts(numbers, true), requests, toy.grid());
  }
  static std::optional<DraftModel> drafter_of(const Toy& toy) {
    if (GetParam().drafter == nullptr) return std::nullopt;
    return random_drafter(toy.target, GetParam().drafter, 1);
  }
  static Models models(const Toy& toy, const std::optional<DraftModel>& drafter) {
    return drafter ? Models{&toy.target, &*drafter} : toy.models();
  }
};

// The exact distribution comes from the CPU: the models on both devices have the same weights. One run, so
// that most cycles are replayed.
TEST_P(CudaLoop, SamplesTheDistributionOfTheTarget) {
  const SyntheticShape shape = run_shape(GetParam().row_ends);
  const Toy toy(shape, at::kFloat, kCuda);
  const std::optional<DraftModel> drafter = drafter_of(toy);
  const JointDistribution counts = distribution_of_slots(toy, GetParam().method, run_sampling(),
                                                         kSampledImages, kSlots, models(toy, drafter));
  EXPECT_TRUE(fits(lossless_distribution(Toy(shape), run_sampling()), counts));
}

// Products in fp32 round differently on the two devices, by far less than the logits of these models differ.
TEST_P(CudaLoop, GreedyImagesAreThoseOfTheCpu) {
  SyntheticShape shape = run_shape(GetParam().row_ends);
  shape.vocabulary = 64;
  shape.layers = 2;
  shape.rows = shape.columns = 6;
  const std::vector<std::int64_t> numbers{0, 1, 2};
  std::vector<DecodeRequest> requests(numbers.size());
  for (DecodeRequest& request : requests) request.sampling = {3, 0, 0, 1, -1};
  const Toy host(shape), device(shape, at::kFloat, kCuda);
  const at::Tensor expected = run(host, numbers, requests);
  const at::Tensor got = run(device, numbers, requests);
  EXPECT_TRUE(at::equal(got, expected)) << "expected\n" << expected << "\ngot\n" << got;
}

std::vector<CudaCase> cuda_cases() {
  const Tree siblings = make_tree({{0}, {1}, {0, 0}, {0, 1}});
  Method refined = heads_method("refine", preset_tree("chain-3")), kept = refined;
  refined.window.keep = false;
  return {{"autoregression", {}},
          {"siblings", static_method(siblings)},
          {"chain", static_method(preset_tree("chain-3"))},
          {"traversal", static_method(siblings, "traversal")},
          {"block", static_method(preset_tree("chain-2"), "block")},
          {"top_children", static_method(siblings, "exact", true)},
          {"dynamic", dynamic_method(1, 2, 4)},
          {"window", window_method("chain-3")},
          {"front", front_method("chain-3", 2)},
          {"fan", window_method("fan-2-2-3")},
          {"window_above", window_method("chain-3", WindowFill::above, false)},
          {"refine", refined, false, "refine"},
          {"refine_kept", kept, false, "refine"},
          {"row_ends_autoregression", {}, true},
          {"row_ends_siblings", static_method(siblings), true},
          {"row_ends_window", window_method("chain-3"), true},
          {"row_ends_dynamic", dynamic_method(1, 2, 4), true}};
}

INSTANTIATE_TEST_SUITE_P(Methods, CudaLoop, ::testing::ValuesIn(cuda_cases()),
                         [](const auto& test) { return test.param.name; });

// Codes of the shipped bundle for one caption, always the most probable ones.
std::vector<std::int32_t> greedy_codes(const std::string& device, const std::string& dtype) {
  RuntimeOptions options;
  options.device = device;
  options.dtype = dtype;
  options.threads = 1;
  TextToImage engine(LAMPLIGHTER_SOURCE_DIR "/models/demo/bundle", options);
  Request request;
  request.prompt = "a white lighthouse on the coast at dusk";
  request.temperature = 0;
  return engine.generate(request).codes.ids;
}

TEST(CudaBundle, GreedyCodesAreThoseOfTheCpu) {
  if (!at::globalContext().hasCUDA()) GTEST_SKIP() << "no CUDA device";
  const std::vector<std::int32_t> expected = greedy_codes("cpu", "fp32"), got = greedy_codes("cuda", "fp32");
  ASSERT_EQ(got.size(), expected.size());
  const auto first = std::mismatch(got.begin(), got.end(), expected.begin()).first - got.begin();
  EXPECT_EQ(first, static_cast<std::ptrdiff_t>(expected.size())) << "first code that differs";
}

TEST(CudaBundle, SamplesInEveryType) {
  if (!at::globalContext().hasCUDA()) GTEST_SKIP() << "no CUDA device";
  for (const char* dtype : {"bf16", "fp16"}) EXPECT_FALSE(greedy_codes("cuda", dtype).empty()) << dtype;
}

}  // namespace
}  // namespace lamplighter::test
