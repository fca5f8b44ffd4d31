#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "continuous/batch.h"
#include "continuous/picture.h"
#include "lamplighter/error.h"
#include "lamplighter/options.h"

namespace lamplighter {

// What pictures of continuous tokens are drawn with; all of it outlives the drawing.
struct ContinuousRun {
  const ContinuousModel* target = nullptr;
  const ContinuousModel* drafter = nullptr;  // of cspd
  ContinuousShape shape;
  MethodOptions method;  // resolved
};

// Where the target's numbers for a picture are not finite: the whole drawing fails, or the picture is damaged
// and for the caller to take out.
enum class Damage { fails, is_left };

using ContinuousPictures = std::vector<std::unique_ptr<ContinuousPicture>>;
// Asked after every round of passes while there is room; nothing: none yet, and none at all where nothing is
// in work.
using NextContinuous = std::function<std::optional<ContinuousRequest>()>;
// Told of all pictures in work after every round of passes; it may take some of them out. False: no more is
// drawn.
using AfterRound = std::function<bool(ContinuousPictures& pictures)>;

// Draws what `next` has, up to `slots` pictures side by side, every one at its own pace: where one is
// complete or taken out, the next takes its place. Pictures are numbered as they come. Throws Error(bundle),
// damaged_target(), where the target's numbers are not finite and that fails, Error(interrupted) when told to
// stop.
void draw_continuous(const ContinuousRun& run, std::int64_t slots, const NextContinuous& next,
                     const AfterRound& after, Damage damage = Damage::fails);
Error damaged_target();

// A round of a method for all pictures given, none of which is complete.
// MAR's parallel decoding (Li et al. 2024, section 3.4): tokens of one pass are independent of each other.
void advance_parallel(const ContinuousRun& run, const std::vector<ContinuousPicture*>& pictures);
// Continuous speculative decoding by the rules exact and paper (arXiv 2411.11925, sections 3.2 and 3.3). The
// rule exact leaves out the ratio of the variances of the paths, Sigma: both networks walk on the same noise,
// where that ratio is one. It has the law of the target; the paper's does not unless Sigma is 1.
void advance_speculative(const ContinuousRun& run, const std::vector<ContinuousPicture*>& pictures);
// The same as the released program does it, which is none of the two: wider Gaussians judge
// blocks of means, rejected tokens are replaced in place, and the target sees no draft of the block.
void advance_released(const ContinuousRun& run, const std::vector<ContinuousPicture*>& pictures);

// Tokens left after pass `pass` of `passes` of a picture with `masked` tokens left (MAR's cosine schedule,
// Li et al. 2024, section 3.4); but for the last pass, which leaves none.
std::int64_t masked_after(std::int64_t positions, std::int64_t passes, std::int64_t pass,
                          std::int64_t masked);

}  // namespace lamplighter
