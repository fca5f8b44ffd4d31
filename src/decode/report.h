#pragma once

#include <cstdint>
#include <optional>
#include <vector>

// What the host reads of cycles.
namespace lamplighter {

// The stages of a cycle in milliseconds. A captured cycle has only `cycle`.
struct StageTimes {
  double draft = 0, score = 0, verify = 0, commit = 0;
  double cycle = 0;    // all of them
  double prefill = 0;  // of the images that took slots before the cycle
  double record = 0;   // of what RunShape::record asks for
};

// A node of a recorded draft (draft_record.h).
struct DraftedNode {
  std::int64_t parent = 0, token = 0;
  float target = 0, draft = 0;  // probabilities of the token
};

// What a cycle did to one image. D = greatest depth of a tree.
struct ImageReport {
  std::int64_t image = 0;               // its number in the run
  std::int64_t steps = 0;               // codes committed so far, given ones among them and behind them
  std::int64_t accepted = 0;            // drafted tokens, including those past the last code of the image
  std::int64_t last_token = 0;          // the newest code before this cycle
  bool bad_draft = false;               // the drafter's logits were NaN or infinite
  bool bad_target = false;              // the target's were: the rest of the report is meaningless
  std::vector<std::int64_t> codes;      // committed by this cycle; none for a complete image
  std::vector<std::int64_t> positions;  // of these codes in the image, raster order
  std::vector<std::int64_t> path;       // D + 1 accepted nodes, node 0 first, then -1
  std::vector<std::int64_t> drafted;    // [d]: nodes at depth d + 1 that hold a token
  std::vector<DraftedNode> nodes = {};  // of the tree; none without RunShape::record
  // Where last_token belongs, if a prefill gave it and no report said so yet.
  std::optional<std::int64_t> first = {};
};

struct Report {
  std::vector<ImageReport> images;  // slot by slot, without empty ones
  StageTimes times;
};

}  // namespace lamplighter
