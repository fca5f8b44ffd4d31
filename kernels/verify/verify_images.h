#pragma once

#include "kernels/common/cpu_executor.h"
#include "kernels/verify/verify_body.h"

// Loops over images for the CPU; `Tag` as for CpuExecutor.
namespace lamplighter::verification {

template <class Tag, class Bugs = NoBugs>
void verify_images(const VerifyArgs& args, int64_t begin, int64_t end, float* scratch) {
  alignas(double) unsigned char cells[kExecutorCells * sizeof(double)];
  CpuExecutor<Tag> executor(cells);
  float* reads = scratch + args.levels * args.vocabulary;
  for (int64_t image = begin; image < end; ++image)
    verify_image<Bugs, Rules::all>(executor, args, image, scratch, reads);
}

}  // namespace lamplighter::verification
