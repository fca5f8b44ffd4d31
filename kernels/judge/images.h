#pragma once

#include "kernels/common/cpu_executor.h"
#include "kernels/judge/body.h"

// Loops over images for the CPU; `Tag` as for CpuExecutor.
namespace lamplighter::judging {

template <class Tag, class Bugs = NoBugs>
void judge_images(const JudgeArgs& args, int64_t begin, int64_t end, float* scratch) {
  alignas(double) unsigned char cells[kExecutorCells * sizeof(double)];
  CpuExecutor<Tag> executor(cells);
  float* reads = scratch + args.levels * args.vocabulary;
  for (int64_t image = begin; image < end; ++image)
    judge_image<Bugs, Rules::all>(executor, args, image, scratch, reads);
}

}  // namespace lamplighter::judging
