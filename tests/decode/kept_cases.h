#pragma once

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "decode/recorder.h"
#include "draft/lookup/lookahead.h"
#include "draft/lookup/ngram.h"
#include "tests/decode/loop_distribution.h"
#include "tests/decode/toy_methods.h"

// Methods for images some of whose tokens are given.
namespace lamplighter::test {

struct KeptCase {
  std::string name;
  Method method;
  bool model = false;  // a small target drafts
};

inline void PrintTo(const KeptCase& test, std::ostream* out) {
  *out << test.name;
}

inline Method lookup_method(MakeDraftMethod make, std::int64_t tail = 0) {
  Method method = static_method(preset_tree("chain-3"), "exact", true);
  method.draft_method = make;
  method.tail = tail;
  return method;
}

inline std::vector<KeptCase> kept_cases(bool greedy) {
  Method conditional = static_method(bushy_tree(), "exact", greedy);
  conditional.conditional = true;
  Method window = window_method("chain-3"), front = front_method("chain-4", 2);
  Method block = static_method(preset_tree("chain-3"), "block", greedy);
  Method self = self_method(preset_tree("chain-2"), 1), nearest = self_method(preset_tree("chain-2"), 1, 2);
  for (Method* method : {&window, &front, &self, &nearest}) method->verify.sampled = !greedy;
  return {{"autoregression", {}},
          {"chain", static_method(preset_tree("chain-3"), "exact", greedy)},
          {"siblings", static_method(bushy_tree(), "exact", greedy)},
          {"block", block},
          {"dynamic", dynamic_method(1, 2, 4)},
          {"dynamic_adapting", adapting(dynamic_method(2, 3, 7))},
          {"window_adapting", adapting(window)},
          {"conditional", conditional},
          {"window", window},
          {"front", front},
          {"self", self},
          {"self_nearest", nearest},
          {"ngram", lookup_method(&make_ngram)},
          {"lookahead", lookup_method(&make_lookahead, 3)},
          {"model_chain", static_method(preset_tree("chain-3"), "exact", greedy), true},
          {"model_siblings", static_method(bushy_tree(), "exact", greedy), true}};
}

inline std::string kept_name(const ::testing::TestParamInfo<KeptCase>& test) {
  return test.param.name;
}

inline at::Tensor continued(const Toy& toy, const Method& method,
                            const std::vector<DecodeRequest>& requests) {
  std::vector<std::int64_t> numbers;
  for (std::size_t i = 0; i < requests.size(); ++i) numbers.push_back(static_cast<std::int64_t>(i));
  return decode(toy.models(), method, toy.prompts(numbers, true), requests, toy.grid());
}

inline SyntheticShape kept_shape(bool row_ends) {
  SyntheticShape shape = small_shape(row_ends);
  shape.vocabulary = 12;
  shape.weight_scale = 1.5;
  return shape;
}

// Of a run with two slots, guided; the grid outlives it.
inline RunShape two_slots(const Toy& toy, const Grid& grid) {
  RunShape shape;
  shape.grid = &grid;
  shape.images = 2;
  shape.prompt_length = toy.target.manifest().prompt->length;
  shape.guided = true;
  return shape;
}

// What the recorder says of greedy images in a run with two slots.
inline std::vector<RecordedImage> recorded(const Toy& toy, const std::vector<DecodeRequest>& requests) {
  const Grid grid = toy.grid();
  const auto count = static_cast<std::int64_t>(requests.size());
  Queue queue{toy, count, [&](std::int64_t number) { return requests[static_cast<std::size_t>(number)]; }};
  const Method method = static_method(preset_tree("chain-3"), "exact", true);
  Recorder recorder(method);
  for (std::int64_t image = 0; image < count; ++image)
    recorder.of(image).keep(requests[static_cast<std::size_t>(image)].kept);
  decode(toy.models(), method, two_slots(toy, grid), queue, [&](const Report& report) {
    recorder.add(report);
    return true;
  });
  std::vector<RecordedImage> records;
  for (std::int64_t image = 0; image < count; ++image) records.push_back(recorder.take(image));
  return records;
}

}  // namespace lamplighter::test
