#include "kernels/compact_body.h"
#include "kernels/cuda_launch.h"

namespace lamplighter {
namespace {

constexpr int kThreads = 256;

// A thread moves one pack of all rows of a plane, sequence and head: what it reads, no other thread writes.
template <class Word>
__global__ void __launch_bounds__(kThreads) compact_kernel(CompactArgs args) {
  const int64_t words = args.row_bytes / static_cast<int64_t>(sizeof(Word));
  const int64_t thread = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const int64_t item = thread / words;  // (plane, sequence, head)
  if (item >= args.planes * args.sequences * args.kv_heads) return;
  Word* column = static_cast<Word*>(args.cache) + item * args.slots * words + thread % words;
  compact_sequence(args, item / args.kv_heads % args.sequences, [=](int64_t from, int64_t to) {
    const bool inside = from >= 0 && from < args.slots && to >= 0 && to < args.slots;
    if (inside) column[to * words] = column[from * words];
  });
}

template <class Word>
void launch(const CompactArgs& args, void* stream) {
  const int64_t words = args.row_bytes / static_cast<int64_t>(sizeof(Word));
  const int64_t threads = args.planes * args.sequences * args.kv_heads * words;
  if (threads == 0) return;
  compact_kernel<Word>
      <<<grid_size((threads + kThreads - 1) / kThreads), kThreads, 0, cuda_stream(stream)>>>(args);
}

}  // namespace

void compact_cuda(const CompactArgs& args, void* stream) {
  if (pack_size<uint16_t>(args.row_bytes / 2, {args.cache}) > 1) {
    launch<uint4>(args, stream);
  } else {
    launch<uint16_t>(args, stream);  // the smallest element
  }
}

}  // namespace lamplighter
