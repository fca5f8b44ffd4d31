#pragma once

#include <vector>

#include "continuous/batch.h"
#include "continuous/continuous_image.h"
#include "lamplighter/error.h"
#include "lamplighter/options.h"

namespace lamplighter {

// What images of continuous tokens are generated with; all of it outlives the run.
struct ContinuousRun {
  const ContinuousModel* target = nullptr;
  const ContinuousModel* drafter = nullptr;  // of cspd
  ContinuousShape shape;
  MethodOptions method;  // resolved
};

// Runs one round of the run's method for images that are generated side by side, none of them complete. An
// image for which the target's numbers are NaN or infinite is `damaged` then.
void advance(const ContinuousRun& run, const std::vector<ContinuousImage*>& images);
Error damaged_target();

// The rounds of the methods.
// MAR's parallel decoding (Li et al. 2024, section 3.4): tokens of one pass are independent of each other.
void advance_parallel(const ContinuousRun& run, const std::vector<ContinuousImage*>& images);
// Continuous speculative decoding by the rules exact and paper (arXiv 2411.11925, sections 3.2 and 3.3). The
// rule exact leaves out the ratio of the variances of the paths, Sigma: both networks walk on the same noise,
// where that ratio is one. It has the distribution of the target; the paper's does not unless Sigma is 1.
void advance_speculative(const ContinuousRun& run, const std::vector<ContinuousImage*>& images);
// Reproduces the official program, which implements neither rule: wider Gaussians verify blocks of means,
// rejected tokens are replaced in place, and the target sees no draft of the block.
void advance_official(const ContinuousRun& run, const std::vector<ContinuousImage*>& images);

// Tokens left after pass `pass` of `passes` of an image with `masked` tokens left (MAR's cosine schedule,
// Li et al. 2024, section 3.4); but for the last pass, which leaves none.
std::int64_t masked_after(std::int64_t positions, std::int64_t passes, std::int64_t pass,
                          std::int64_t masked);

}  // namespace lamplighter
