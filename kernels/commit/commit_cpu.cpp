#include <torch/library.h>

#include "kernels/commit/commit_body.h"
#include "kernels/commit/commit_operators.h"

namespace lamplighter {
namespace {

// Contents that would lead outside the tensors. Only the CPU reads them.
void check_contents(const CommitArgs& args) {
  for (int64_t image = 0; image < args.images; ++image) {
    const int64_t count = args.count[image], ended = args.kept_count[image] - count;
    TORCH_CHECK(count >= 0 && count < args.width, "commit_tokens: count of image ", image, " is ", count,
                ", expected 0..", args.width - 1);
    TORCH_CHECK((ended == 0 || ended == 1) && count + ended < args.kept_width,
                "commit_tokens: kept_count of image ", image, " is ", count + ended, ", expected ", count,
                " or one more, below ", args.kept_width);
    for (int64_t j = 0; j <= count; ++j) {
      const int64_t node = args.path[image * args.width + j];
      TORCH_CHECK(node >= 0 && node < args.nodes, "commit_tokens: path of image ", image, " has node ", node,
                  " at index ", j, ", expected 0..", args.nodes - 1);
    }
    const int64_t steps = args.steps[image];
    TORCH_CHECK(steps >= 0 && steps <= args.total, "commit_tokens: image ", image, " has ", steps,
                " tokens, expected 0..", args.total);
  }
}

struct OnCpu {
  explicit OnCpu(const at::Tensor& /*tensor*/) {}

  void operator()(const TreeRowsArgs& args) const {
    for (int64_t s = 0; s < args.sequences; ++s) {
      for (int64_t row = 0; row < args.rows; ++row) tree_row(args, s, row);
    }
  }
  void operator()(const CommitArgs& args) const {
    check_contents(args);
    for (int64_t image = 0; image < args.images; ++image) commit_image(args, image, 0, 1, [] {});
  }
};

}  // namespace

TORCH_LIBRARY_IMPL(lamplighter, CPU, m) {
  m.impl("tree_rows", &CycleOperators<OnCpu>::tree_rows);
  m.impl("commit_tokens", &CycleOperators<OnCpu>::commit_tokens);
}

}  // namespace lamplighter
