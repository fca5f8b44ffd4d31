#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <ostream>
#include <set>

#include "decode/recorder.h"
#include "lamplighter/error.h"
#include "tests/decode/toy.h"
#include "tests/decode/toy_methods.h"
#include "tests/error_of.h"

// More images than slots: an image that is complete makes room for the next, and no image knows of it.
namespace lamplighter::test {
namespace {

constexpr std::int64_t kQueuedImages = 7;

struct SlotCase {
  std::string name;
  Method method;
  c10::ScalarType dtype = at::kFloat;
  bool row_ends = false;
  bool model = false;  // a small target drafts
};

void PrintTo(const SlotCase& test, std::ostream* out) {
  *out << test.name;
}

SyntheticShape slot_shape(bool row_ends) {
  SyntheticShape shape;
  shape.vocabulary = 12;
  shape.rows = 3;
  shape.columns = 4;
  shape.prompt_length = 5;
  shape.row_ends = row_ends;
  shape.schedule = {"decay", 1.5, 1, false};
  shape.weight_scale = 1.5;
  return shape;
}

// Guided or not, partly guided, hot or at temperature 0.
DecodeRequest queued_request(std::int64_t number) {
  SamplingOptions sampling;
  sampling.cfg_scale = number % 3 == 1 ? 1.0F : 2.5F;
  sampling.temperature = number == 4 ? 0.0F : 0.8F + 0.1F * static_cast<float>(number);
  sampling.top_k = number % 2 == 0 ? 9 : 0;
  sampling.cfg_interval = number == 3 ? 4 : -1;
  return {sampling, 70 + static_cast<std::uint64_t>(number)};
}

RunShape shape_of(const Grid& grid, std::int64_t slots) {
  RunShape shape;
  shape.grid = &grid;
  shape.images = slots;
  shape.prompt_length = 5;
  shape.guided = shape.varying = true;
  return shape;
}

class SlotsTest : public ::testing::TestWithParam<SlotCase> {
 protected:
  void SetUp() override { at::set_num_threads(1); }
  const Toy toy_ = make_toy(slot_shape(GetParam().row_ends), GetParam().model, GetParam().dtype);
};

TEST_P(SlotsTest, AnImageIsThatOfARunOfItsOwn) {
  const Grid grid = toy_.grid();
  std::vector<std::vector<std::int64_t>> alone;
  for (std::int64_t number = 0; number < kQueuedImages; ++number) {
    const DecodeRequest sample = queued_request(number);
    const at::Tensor codes =
        decode(toy_.models(), GetParam().method, toy_.prompts({number}, is_guided({sample})), {sample}, grid);
    alone.emplace_back(codes.const_data_ptr<std::int64_t>(),
                       codes.const_data_ptr<std::int64_t>() + grid.tokens());
  }
  for (const std::int64_t slots : {1, 2, 3, 9}) {
    Recorder recorder(GetParam().method);
    std::vector<std::int64_t> cycles(kQueuedImages, 0);
    bool refilled = false;  // beside an image that goes on
    decode(toy_.models(), GetParam().method, shape_of(grid, slots),
           Queue{toy_, kQueuedImages, queued_request}, [&](const Report& report) {
             recorder.add(report);
             EXPECT_LE(static_cast<std::int64_t>(report.images.size()), slots);
             std::set<bool> fresh;
             for (const ImageReport& image : report.images) {
               EXPECT_FALSE(image.codes.empty()) << "a slot stands still";
               fresh.insert(++cycles[static_cast<std::size_t>(image.image)] == 1);
             }
             refilled = refilled || fresh.size() == 2;
             return true;
           });
    const bool in_step = slots == 1 || slots == 9 || !drafts(GetParam().method);
    EXPECT_TRUE(refilled || in_step) << slots << " slots";
    for (std::int64_t number = 0; number < kQueuedImages; ++number) {
      const auto index = static_cast<std::size_t>(number);
      const RecordedImage sampled = recorder.take(number);
      EXPECT_EQ(std::vector<std::int64_t>(sampled.codes.begin(), sampled.codes.end()), alone[index])
          << "image " << number << ", " << slots << " slots";
      EXPECT_EQ(sampled.statistics.tokens, grid.tokens());
      EXPECT_EQ(sampled.statistics.target_passes, cycles[index] + 1);
      EXPECT_EQ(static_cast<std::int64_t>(sampled.statistics.cycles.size()), cycles[index]);
      EXPECT_LE(sampled.statistics.batch, std::min(slots, kQueuedImages));
      if (number == 0) {
        EXPECT_EQ(sampled.statistics.batch, std::min(slots, kQueuedImages));
      }
    }
  }
}

TEST_P(SlotsTest, StopsBetweenImages) {
  const Grid grid = toy_.grid();
  Queue queue{toy_, kQueuedImages, queued_request};
  std::int64_t last = -1;
  const auto three = [&](const Report& report) {
    for (const ImageReport& image : report.images) last = std::max(last, image.image);
    return last < 3;
  };
  const auto action = [&] {
    decode(toy_.models(), GetParam().method, shape_of(grid, 2), std::ref(queue), three);
  };
  EXPECT_NE(error_of(ExitCode::interrupted, action), "");
  EXPECT_EQ(last, queue.begun - 1);
  EXPECT_LT(queue.begun, kQueuedImages);
}

// An image comes every third cycle. Those that are odd are given up after their second.
struct OpenQueue {
  PendingImages next(std::int64_t free) {
    PendingImages images;
    ++cycle;
    const bool idle = dropped.size() + complete.size() == static_cast<std::size_t>(begun);
    if (begun == kQueuedImages || free == 0 || (!idle && cycle % 3 != 0)) return images;
    images.requests.push_back(queued_request(begun));
    images.prompts = toy.prompts({begun++}, true);
    return images;
  }

  void add(const Report& report, DecodeRun& run) {
    for (const ImageReport& image : report.images) {
      EXPECT_EQ(dropped.count(image.image), 0U) << "a slot is not free";
      auto& row = codes[image.image];
      row.resize(static_cast<std::size_t>(grid.tokens()));
      for (std::size_t i = 0; i < image.codes.size(); ++i)
        row[static_cast<std::size_t>(image.positions[i])] = image.codes[i];
      if (image.steps == grid.tokens()) complete.insert(image.image);
      if (image.image % 2 == 0 || ++seen[image.image] != 2 || complete.count(image.image) != 0) continue;
      run.drop(image.image);
      dropped.insert(image.image);
    }
  }

  const Toy& toy;
  Grid grid;
  std::int64_t begun = 0, cycle = 0;
  std::set<std::int64_t> dropped = {}, complete = {};
  std::map<std::int64_t, int> seen = {};
  std::map<std::int64_t, std::vector<std::int64_t>> codes = {};  // the first is 0: it comes from the prompt
};

TEST_P(SlotsTest, ImagesComeAndGoWhileOthersAreSampled) {
  const Grid grid = toy_.grid();
  for (const std::int64_t slots : {1, 2, 4}) {
    OpenQueue queue{toy_, grid};
    DecodeRun run(toy_.models(), GetParam().method, shape_of(grid, slots));
    do {
      queue.add(*run.step(queue.next(run.free_slots())), run);
    } while (queue.begun < kQueuedImages || !run.is_idle());
    EXPECT_FALSE(queue.dropped.empty());
    for (const std::int64_t number : queue.complete) {
      const DecodeRequest sample = queued_request(number);
      const at::Tensor alone = decode(toy_.models(), GetParam().method,
                                      toy_.prompts({number}, is_guided({sample})), {sample}, grid);
      const std::int64_t* first = alone.const_data_ptr<std::int64_t>();
      std::vector<std::int64_t> expected(first, first + grid.tokens());
      expected.front() = 0;
      EXPECT_EQ(queue.codes[number], expected) << "image " << number << ", " << slots << " slots";
    }
  }
}

TEST_P(SlotsTest, AnImageOfNoNumbersLeavesTheOthersAlone) {
  const Grid grid = toy_.grid();
  std::set<std::int64_t> bad;
  std::map<std::int64_t, std::vector<std::int64_t>> codes;
  DecodeRun run(toy_.models(), GetParam().method, shape_of(grid, 2));
  std::int64_t begun = 0;
  do {
    PendingImages images;
    std::vector<std::int64_t> numbers;
    for (std::int64_t free = run.free_slots(); begun < 3 && free > 0; ++begun, --free) {
      numbers.push_back(begun);
      images.requests.push_back(queued_request(begun));
      if (begun == 1) images.requests.back().sampling.cfg_scale = std::numeric_limits<float>::infinity();
    }
    if (!numbers.empty()) images.prompts = toy_.prompts(numbers, true);
    const std::optional<Report> report = run.step(images);
    for (const ImageReport& image : report->images) {
      if (image.bad_target) {
        bad.insert(image.image);
        run.drop(image.image);
        continue;
      }
      codes[image.image].resize(static_cast<std::size_t>(grid.tokens()));
      for (std::size_t i = 0; i < image.codes.size(); ++i)
        codes[image.image][static_cast<std::size_t>(image.positions[i])] = image.codes[i];
    }
  } while (begun < 3 || !run.is_idle());
  EXPECT_EQ(bad, std::set<std::int64_t>{1});
  for (const std::int64_t number : {0, 2}) {
    const DecodeRequest sample = queued_request(number);
    const at::Tensor alone =
        decode(toy_.models(), GetParam().method, toy_.prompts({number}, true), {sample}, grid);
    const std::int64_t* first = alone.const_data_ptr<std::int64_t>();
    std::vector<std::int64_t> expected(first, first + grid.tokens());
    expected.front() = 0;
    EXPECT_EQ(codes[number], expected) << "image " << number;
  }
}

std::vector<SlotCase> slot_cases() {
  const std::int64_t codes = slot_shape(false).vocabulary;
  Method conditional = static_method(bushy_tree());
  conditional.conditional = true;
  return {{"ar", {}},
          {"ar_bf16", {}, at::kBFloat16},
          {"static_tree", static_method(bushy_tree())},
          {"static_tree_bf16", static_method(bushy_tree()), at::kBFloat16},
          {"conditional_drafts", conditional},
          {"dynamic", dynamic_method(2, 3, 7)},
          {"dynamic_bf16", dynamic_method(2, 3, 7), at::kBFloat16},
          {"dynamic_adapting", adapting(dynamic_method(3, 4, 9))},
          {"dynamic_adapting_row_ends", adapting(dynamic_method(2, 3, 7)), at::kFloat, true},
          {"window_adapting", adapting(window_method("chain-5"))},
          {"window_adapting_row_ends", adapting(window_method("chain-5")), at::kFloat, true},
          {"lanternpp", relaxed_method(bushy_tree(), "lantern++", 2, 3, next_codes(codes))},
          {"zipar", zipar_method(2)},
          {"zipar_zero_rows_bf16", zipar_method(1, true), at::kBFloat16},
          {"zipar_sjd", row_windows(2, 3)},
          {"pjd_bf16", row_windows(1, 2, true), at::kBFloat16},
          {"chain_that_ends", ending_method("chain-4", 0.3F)},
          {"chain_that_ends_row_ends", ending_method("chain-4", 0.3F), at::kFloat, true},
          {"self", self_method(bushy_tree(), 1)},
          {"self_window_bf16", self_method(bushy_tree(), 2, 3), at::kBFloat16},
          {"self_row_ends", self_method(bushy_tree(), 1), at::kFloat, true},
          {"ar_row_ends", {}, at::kFloat, true},
          {"static_tree_row_ends", static_method(bushy_tree()), at::kFloat, true},
          {"dynamic_row_ends", dynamic_method(2, 3, 7), at::kFloat, true},
          {"model_chain", static_method(preset_tree("chain-3")), at::kFloat, false, true},
          {"model_chain_bf16", static_method(preset_tree("chain-3")), at::kBFloat16, false, true},
          {"model_static_tree", static_method(bushy_tree()), at::kFloat, false, true},
          {"model_conditional_drafts", conditional, at::kFloat, false, true},
          {"model_chain_row_ends", static_method(preset_tree("chain-3")), at::kFloat, true, true}};
}

INSTANTIATE_TEST_SUITE_P(Methods, SlotsTest, ::testing::ValuesIn(slot_cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace lamplighter::test
