#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "acceptance/rules.h"
#include "decode/report.h"
#include "draft/draft.h"
#include "draft/verify.h"
#include "lamplighter/pipeline.h"

// The drafts of a run and their probabilities, for those who ask for them (RunShape::record).
namespace lamplighter {

// The nodes of a tree draft, fp64 [I, N, 4]: parent, token, and the probabilities of the token under the
// target and under what it was drafted from; the root has 0 for both. Undefined for row-parallel drafts. The
// host does not wait for the device. `sampled`: children were sampled, not chosen. Call it before the commit.
at::Tensor record_draft(const Draft& draft, const Verified& verified, bool sampled);

// The record of one image, fp64 [N, 4] on the CPU.
std::vector<DraftedNode> drafted_nodes(const at::Tensor& record);

// The tree of an image and what it refused. `walk`: of the rule that verified it.
DraftedTree drafted_tree(const ImageReport& image, Walk walk);

}  // namespace lamplighter
