#include "kernels/common/cuda/launch.h"
#include "kernels/judge/cuda.h"

namespace lamplighter {
namespace {

using judging::Rules;

auto* judge_tree_kernel_of(const JudgeArgs& args) {
  return args.paths ? judge_tree_kernel<Rules::paths> : judge_tree_kernel<Rules::walks>;
}

// Where the kernels keep what they compute: both use the same memory, one after the other.
struct Layout {
  int64_t judges;    // blocks
  size_t verdicts;   // bytes
  size_t residuals;  // bytes
  size_t reads;      // bytes; 0 where shared memory holds them
  size_t shared;     // bytes of a block
};

Layout layout_of(const JudgeArgs& args) {
  Layout layout{};
  layout.judges = args.nodes > 1 && !args.paths ? args.images * kJudges : 0;
  const size_t row = static_cast<size_t>(args.vocabulary) * sizeof(float);
  const size_t reads = judge_read_floats(args) * sizeof(float);
  layout.verdicts = (static_cast<size_t>(args.images * args.nodes) * sizeof(int) + 127) / 128 * 128;
  const auto images = static_cast<size_t>(args.images);
  const size_t judged = static_cast<size_t>(layout.judges) * 2 * row;
  const size_t walked = images * judge_residual_floats(args) * sizeof(float);
  layout.residuals = judged > walked ? judged : walked;
  const bool in_shared = reads > 0 && shared_bytes_for(judge_nodes_kernel, reads) > 0 &&
                         shared_bytes_for(judge_tree_kernel_of(args), reads) > 0;
  layout.shared = in_shared ? reads : 0;
  const auto blocks = static_cast<size_t>(layout.judges > 0 ? layout.judges : args.images);
  layout.reads = in_shared ? 0 : reads * blocks;
  return layout;
}

}  // namespace

size_t judge_cuda_bytes(const JudgeArgs& args) {
  const Layout layout = layout_of(args);
  return layout.verdicts + layout.residuals + layout.reads;
}

void judge_cuda(const JudgeArgs& args, void* scratch, void* stream) {
  if (args.images == 0) return;
  const Layout layout = layout_of(args);
  int* verdicts = static_cast<int*>(scratch);
  auto* residuals = reinterpret_cast<float*>(static_cast<char*>(scratch) + layout.verdicts);
  float* reads = layout.reads > 0 ? residuals + layout.residuals / sizeof(float) : nullptr;
  const auto floats = static_cast<int64_t>(judge_read_floats(args));
  JudgeArgs judged = args;
  if (layout.judges > 0) {
    judge_nodes_kernel<<<grid_size(layout.judges), kRowThreads, layout.shared, cuda_stream(stream)>>>(
        args, residuals, reads, floats, verdicts);
    judged.verdicts = verdicts;
  }
  judge_tree_kernel_of(args)<<<grid_size(args.images), kRowThreads, layout.shared, cuda_stream(stream)>>>(
      judged, residuals, reads, floats);
}

}  // namespace lamplighter
