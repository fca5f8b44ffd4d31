#include "kernels/common/cuda/launch.h"
#include "kernels/window/window_cuda.h"

namespace lamplighter {

void renew_window_cuda(const RenewWindowArgs& args, float* scratch, void* stream) {
  const int64_t entries = args.verify.images * (args.verify.nodes - 1);
  if (entries == 0) return;
  renew_window_kernel<<<grid_size(entries), kRowThreads, 0, cuda_stream(stream)>>>(args, scratch);
}

void renew_fan_cuda(const RenewFanArgs& args, float* scratch, void* stream) {
  const int64_t entries = args.verify.images * args.length;
  if (entries == 0) return;
  renew_fan_kernel<<<grid_size(entries), kRowThreads, 0, cuda_stream(stream)>>>(args, scratch);
}

void fill_window_cuda(const FillWindowArgs& args, void* stream) {
  const int64_t entries = args.images * args.length;
  if (entries > 0) fill_window_kernel<<<grid_size(entries), kRowThreads, 0, cuda_stream(stream)>>>(args);
}

}  // namespace lamplighter
