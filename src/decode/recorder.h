#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "decode/report.h"
#include "lamplighter/pipeline.h"

namespace lamplighter {

struct Method;

// An image while it is decoded.
struct RecordedImage {
  Statistics statistics;
  std::vector<std::int32_t> codes;  // so far, raster order, the kept ones among them; -1: unknown
  // The codes before the first unknown one.
  std::vector<std::int32_t> known() const;
  bool bad_draft = false;  // the drafter's logits were NaN or infinite in some cycle
  // Before the image begins. -1: a code that is not kept.
  void keep(const std::vector<std::int32_t>& kept);
  // Adds a code that was committed.
  void set(std::int64_t position, std::int64_t code);
};

// Collects the commits of a run's cycles, image by image.
class Recorder {
 public:
  explicit Recorder(const Method& method) : method_(method) {}

  void add(const Report& report);

  // The record of an image, also of one that has not begun: what it keeps is set then.
  RecordedImage& of(std::int64_t image);
  // Removes the record and returns it.
  RecordedImage take(std::int64_t image);

 private:
  void add(const ImageReport& image, std::size_t together, const StageTimes& times);

  const Method& method_;
  std::map<std::int64_t, RecordedImage> images_;
};

}  // namespace lamplighter
