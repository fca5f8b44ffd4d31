#pragma once

#include <cstdint>
#include <vector>

// What the host learns of cycles.
namespace lamplighter {

// The stages of a cycle in milliseconds. A captured cycle has no stages: then `cycle` alone is known.
struct StageTimes {
  double draft = 0, score = 0, judge = 0, commit = 0;
  double cycle = 0;    // all of them
  double prefill = 0;  // of the images that took slots just before
};

// What a cycle did to one image. D = greatest depth of a tree.
struct ImageReport {
  std::int64_t image = 0;             // its number in the run
  std::int64_t steps = 0;             // codes committed so far
  std::int64_t accepted = 0;          // drafted tokens, also those past the last code of the picture
  std::int64_t root = 0;              // the code before those of this cycle
  bool bad_draft = false;             // logits that children were drawn from were no distribution
  bool bad_target = false;            // logits that it was judged by were none: the rest says nothing
  std::vector<std::int64_t> codes;    // committed by this cycle; none when the picture was complete
  std::vector<std::int64_t> places;   // of these codes in the picture, raster order
  std::vector<std::int64_t> path;     // D + 1 accepted nodes, the root first, then -1
  std::vector<std::int64_t> drafted;  // [d]: nodes at depth d + 1 that hold a token

  // Whether the root is the picture's first code, which came out of the prefill.
  bool is_first() const { return steps == static_cast<std::int64_t>(codes.size()) + 1; }
};

struct Report {
  std::vector<ImageReport> images;  // slot by slot; empty slots are left out
  StageTimes times;
};

}  // namespace lamplighter
