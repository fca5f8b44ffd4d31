#include "kernels/attend/cuda_join.h"
#include "kernels/attend/cuda_mma.h"
#include "kernels/attend/cuda_one.h"
#include "kernels/common/cuda/launch.h"

namespace lamplighter {
namespace {

template <class T, int kHead>
void run_pass(const AttendArgs& args, const AttendPass& pass, const SpanResults& results,
              cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(pass.splits), static_cast<unsigned>(args.kv_heads),
                  static_cast<unsigned>(args.sequences));
  const auto threads = static_cast<unsigned>(pass.threads);
  if (pass.one) {
    launch_chained(attend_one_kernel<T, kHead>, grid, threads, 0, stream, args, pass, results);
    if (pass.splits == 1) return;
  } else {
    const auto kernel = pass.slices == 4   ? attend_span_kernel<T, kHead, 4>
                        : pass.slices == 2 ? attend_span_kernel<T, kHead, 2>
                                           : attend_span_kernel<T, kHead, 1>;
    // More than 48 KB have to be asked for. A failure shows when the launch is checked.
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSpanSharedBytes);
    launch_chained(kernel, grid, threads, kSpanSharedBytes, stream, args, pass, results);
  }
  const int64_t outputs = args.sequences * pass.count * args.heads * (kHead / 4);
  launch_chained(attend_join_kernel<T, kHead>, dim3(grid_size((outputs + kJoinThreads - 1) / kJoinThreads)),
                 kJoinThreads, 0, stream, args, pass, results);
}

}  // namespace

void attend_spans_cuda(const AttendArgs& args, void* workspace, void* stream) {
  size_t bytes = 0;
  const SpanResults results = span_results(args, workspace, &bytes);
  const auto run = [&](auto element) {
    using T = decltype(element);
    const auto kernels = args.head_dim == 64 ? run_pass<T, 64> : run_pass<T, 128>;
    AttendPass pass{};
    for (int64_t first = 0; first < args.rows; first += pass.count) {
      pass = attend_pass(args, first);
      kernels(args, pass, results, cuda_stream(stream));
    }
  };
  if (args.type == ElementType::kBFloat16) {
    run(BFloat16Bits{});
  } else {
    run(Float16Bits{});
  }
}

}  // namespace lamplighter
