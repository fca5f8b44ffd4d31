#include "kernels/common/cpu_executor.h"
#include "kernels/common/this_isa.h"
#include "kernels/trees/children_body.h"
#include "kernels/trees/dynamic_body.h"

namespace lamplighter {

template <>
void sample_children_cpu<kThisIsa>(const SampleChildrenArgs& args, int64_t begin, int64_t end,
                                   void* scratch) {
  CpuExecutor<ThisTag> executor(scratch);
  char* lists = after_cells<char>(scratch);
  float* room = reinterpret_cast<float*>(lists + children::kScratchPerToken * args.rows.vocabulary);
  for (int64_t row = begin; row < end; ++row) {
    children::sample_children_row(executor, args, row, lists, room);
  }
}

template <>
void expand_cpu<kThisIsa>(const ExpandArgs& args, int64_t begin, int64_t end, void* scratch) {
  CpuExecutor<ThisTag> executor(scratch);
  float* room = after_cells<float>(scratch);
  for (int64_t row = begin; row < end; ++row) {
    dynamic::expand_row(executor, args, row, room + args.rows.vocabulary, room);
  }
}

}  // namespace lamplighter
