#include "kernels/commit/compact_cuda.h"
#include "kernels/common/cuda/launch.h"

namespace lamplighter {
namespace {

template <class Word>
void launch(const CompactArgs& args, void* stream) {
  const int64_t words = args.row_bytes / static_cast<int64_t>(sizeof(Word));
  const int64_t threads = args.planes * args.sequences * args.kv_heads * words;
  if (threads == 0) return;
  compact_kernel<Word><<<grid_size((threads + kCompactThreads - 1) / kCompactThreads), kCompactThreads, 0,
                         cuda_stream(stream)>>>(args);
}

}  // namespace

void compact_cuda(const CompactArgs& args, void* stream) {
  if (pack_size<uint16_t>(args.row_bytes / 2, {args.cache}) > 1) {
    launch<Pack<uint32_t, 4>>(args, stream);
  } else {
    launch<uint16_t>(args, stream);  // the smallest element
  }
}

}  // namespace lamplighter
