#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <algorithm>
#include <tuple>

#include "kernels/children_args.h"
#include "kernels/children_body.h"
#include "kernels/executor.h"
#include "kernels/isa.h"

namespace lamplighter {

size_t draw_children_scratch_bytes(int64_t vocabulary) {
  const size_t bytes =
      kExecutorCells * sizeof(double) + static_cast<size_t>(vocabulary * children::kScratchPerToken);
  return (bytes + 63) / 64 * 64;
}

namespace {

std::tuple<at::Tensor, at::Tensor> draw_children_cpu(const at::Tensor& probabilities, const at::Tensor& seeds,
                                                     const at::Tensor& steps, const at::Tensor& nodes,
                                                     int64_t count, bool sampled) {
  constexpr int64_t kElementsPerTask = 16384;  // below that a thread costs more than it saves
  DrawChildrenArgs args = draw_children_args(probabilities, seeds, steps, nodes, count, sampled);
  at::Tensor tokens = at::empty({args.images, args.width, count}, seeds.options());
  at::Tensor conditional = at::empty({args.images, args.width, count}, probabilities.options());
  args.tokens = tokens.mutable_data_ptr<int64_t>();
  args.conditional = conditional.mutable_data_ptr<float>();
  const size_t bytes = draw_children_scratch_bytes(args.vocabulary);
  at::Tensor scratch =
      at::empty({at::get_num_threads(), static_cast<int64_t>(bytes)}, seeds.options().dtype(at::kByte));
  auto* scratch_base = static_cast<char*>(scratch.mutable_data_ptr());
  const Isa isa = active_isa();
  const auto kernel = isa == Isa::kAvx512 ? draw_children_avx512
                      : isa == Isa::kAvx2 ? draw_children_avx2
                                          : draw_children_portable;
  at::parallel_for(0, args.images * args.width, std::max<int64_t>(1, kElementsPerTask / args.vocabulary),
                   [&](int64_t begin, int64_t end) {
                     kernel(args, begin, end,
                            scratch_base + static_cast<size_t>(at::get_thread_num()) * bytes);
                   });
  return {tokens, conditional};
}

}  // namespace

TORCH_LIBRARY_IMPL(lamplighter, CPU, m) {
  m.impl("draw_children", draw_children_cpu);
}

}  // namespace lamplighter
