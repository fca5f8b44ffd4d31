#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "decode/report.h"
#include "lamplighter/pipeline.h"

namespace lamplighter {

struct Method;

// What is known of an image while it is drawn.
struct Drawn {
  Statistics statistics;
  std::vector<std::int32_t> codes;  // so far, raster order; -1: not drawn yet
  // Those before the first that is lacking.
  std::vector<std::int32_t> known() const;
  bool bad_draft = false;  // the drafter's logits were no distribution in some cycle
};

// Collects what the cycles of a run commit, image by image.
class Recorder {
 public:
  explicit Recorder(const Method& method) : method_(method) {}

  void add(const Report& report);

  // What is known of an image of this number, also of one that has not begun.
  Drawn& of(std::int64_t image);
  // The same, to keep no longer.
  Drawn take(std::int64_t image);

 private:
  void add(const ImageReport& image, std::size_t together, const StageTimes& times);

  const Method& method_;
  std::map<std::int64_t, Drawn> images_;
};

}  // namespace lamplighter
