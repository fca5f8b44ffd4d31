#include "kernels/common/cuda/launch.h"
#include "kernels/window/window_cuda.h"

namespace lamplighter {

void renew_window_cuda(const RenewWindowArgs& args, float* scratch, void* stream) {
  const int64_t slots = args.verify.images * (args.verify.nodes - 1);
  if (slots == 0) return;
  renew_window_kernel<<<grid_size(slots), kRowThreads, 0, cuda_stream(stream)>>>(args, scratch);
}

void renew_fan_cuda(const RenewFanArgs& args, float* scratch, void* stream) {
  const int64_t slots = args.verify.images * args.slots;
  if (slots == 0) return;
  renew_fan_kernel<<<grid_size(slots), kRowThreads, 0, cuda_stream(stream)>>>(args, scratch);
}

void fill_window_cuda(const FillWindowArgs& args, void* stream) {
  const int64_t slots = args.images * args.slots;
  if (slots > 0) fill_window_kernel<<<grid_size(slots), kRowThreads, 0, cuda_stream(stream)>>>(args);
}

}  // namespace lamplighter
