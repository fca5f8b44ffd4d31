#pragma once

#include "kernels/commit/commit_body.h"
#include "kernels/sampling/sampling_body.h"
#include "kernels/step/ar_step.h"
#include "kernels/step/step_uniform.h"

// ar_step for one image, written once for every executor; meaning in kernels/step/ar_step.h.
namespace lamplighter::step {

LAMPLIGHTER_INLINE float uniform_of(const ArStepArgs& args, int64_t image) {
  return uniform_of(args.seeds[image], args.commit.steps[image], args.purpose, 0);
}

// memory: 2 * vocabulary floats.
template <class Executor>
LAMPLIGHTER_INLINE int64_t next_token(Executor& executor, const ArStepArgs& args, int64_t image,
                                      float* memory) {
  sampling::guide_and_filter_row(executor, args.filter, image, memory);
  DistributionRows rows = args.filter.logits;
  rows.statistics = args.filter.out;
  return sampling::sample_token(executor, sampling::read_probabilities(executor, rows, image, memory),
                                static_cast<int>(rows.vocabulary), uniform_of(args, image),
                                args.temperature[image]);
}

// Every one of `lanes` threads calls it with its number; sync() is a barrier of theirs.
template <class Sync>
LAMPLIGHTER_INLINE void commit_next(const ArStepArgs& args, int64_t image, int64_t token, int64_t lane,
                                    int64_t lanes, Sync sync) {
  const bool ended = args.logits_rows != nullptr && args.logits_rows[image] != 0;
  commit_to(args.commit, committed_token(args.commit, image, token, ended), 0, image, lane, lanes, sync);
}

}  // namespace lamplighter::step
