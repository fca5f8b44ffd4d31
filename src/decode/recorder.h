#pragma once

#include <cstdint>
#include <vector>

#include "decode/decode.h"
#include "lamplighter/pipeline.h"

namespace lamplighter {

// Counts what the cycles of a run commit, image by image.
class Recorder {
 public:
  Recorder(const Method& method, std::int64_t images);

  // After every cycle; the first is the prefill.
  void add(const DecodeState& state, const Draft& tree, const Accepted& accepted, const StageTimes& times);

  const Statistics& of(std::int64_t image) const { return statistics_[static_cast<std::size_t>(image)]; }

 private:
  const Method& method_;
  std::vector<Statistics> statistics_;
};

}  // namespace lamplighter
