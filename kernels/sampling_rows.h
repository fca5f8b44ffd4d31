#pragma once

#include "kernels/cpu_executor.h"
#include "kernels/sampling_body.h"

// Loops over rows for the CPU; `Tag` as for CpuExecutor.
namespace lamplighter::sampling {

template <class Tag>
void guide_and_filter_rows(const GuideAndFilterArgs& args, int64_t begin, int64_t end, void* scratch) {
  CpuExecutor<Tag> executor(scratch);
  float* z = reinterpret_cast<float*>(static_cast<double*>(scratch) + kExecutorCells);
  for (int64_t row = begin; row < end; ++row) {
    switch (args.type) {
      case ElementType::kFloat32:
        guide_and_filter_row<float>(executor, args, row, z);
        break;
      case ElementType::kBFloat16:
        guide_and_filter_row<BFloat16Bits>(executor, args, row, z);
        break;
      case ElementType::kFloat16:
        guide_and_filter_row<Float16Bits>(executor, args, row, z);
        break;
    }
  }
}

template <class Tag>
void draw_rows(const DrawArgs& args, int64_t begin, int64_t end) {
  CpuExecutor<Tag> executor(nullptr);
  for (int64_t row = begin; row < end; ++row) {
    args.out[row] =
        draw_row(executor, args.probabilities + row * args.vocabulary, static_cast<int>(args.vocabulary),
                 args.uniforms[row], args.temperature[row / args.rows]);
  }
}

}  // namespace lamplighter::sampling
