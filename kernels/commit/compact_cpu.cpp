#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include <algorithm>
#include <cstring>

#include "kernels/commit/compact_args.h"
#include "kernels/commit/compact_body.h"

namespace lamplighter {
namespace {

constexpr int64_t kBytesPerThread = 1 << 16;  // below, waking another thread costs more

// Contents that would lead outside the cache or overwrite rows still to be read. Only the CPU reads them.
void check_contents(const CompactArgs& args) {
  for (int64_t s = 0; s < args.sequences; ++s) {
    const int64_t image = s / args.sequences_per_image, length = args.lengths[s], count = args.count[image];
    const int64_t* path = args.path + image * args.width;
    TORCH_CHECK(count >= -1 && count < std::max<int64_t>(args.width, 1), "compact_cache: count of image ",
                image, " is ", count, ", expected -1..", args.width - 1);
    if (count <= 0) continue;
    for (int64_t j = 0; j <= count; ++j) {
      TORCH_CHECK(j == 0 ? path[0] == 0 : path[j] > path[j - 1], "compact_cache: path of image ", image,
                  " has row ", path[j], " at index ", j, ", expected ", j == 0 ? "0" : "rising rows");
    }
    TORCH_CHECK(length >= 0 && length + path[count] < args.slots, "compact_cache: row ", path[count],
                " behind the ", length, " of sequence ", s, " is outside the cache of ", args.slots, " rows");
  }
}

int64_t rows_to_move(const CompactArgs& args) {
  int64_t rows = 0;
  for (int64_t s = 0; s < args.sequences; ++s) {
    const Moves moves(args, s);
    for (int64_t j = 1; j <= moves.count; ++j) rows += moves.source(j) >= 0 ? 1 : 0;
  }
  return rows;
}

void compact_cache(at::Tensor& cache, const at::Tensor& lengths, const at::Tensor& path,
                   const at::Tensor& count) {
  const CompactArgs args = compact_args(cache, lengths, path, count);
  check_contents(args);
  const int64_t rows = rows_to_move(args);
  if (rows == 0) return;
  const int64_t bytes = std::max<int64_t>(1, rows * args.kv_heads * args.row_bytes);  // of one plane
  const auto size = static_cast<size_t>(args.row_bytes);
  at::parallel_for(0, args.planes, (kBytesPerThread + bytes - 1) / bytes, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin * args.sequences; i < end * args.sequences; ++i) {
      for (int64_t head = 0; head < args.kv_heads; ++head) {
        char* base =
            static_cast<char*>(args.cache) + (i * args.kv_heads + head) * args.slots * args.row_bytes;
        const Moves moves(args, i % args.sequences);
        for (int64_t j = 1; j <= moves.count; ++j) {
          const int64_t source = moves.source(j);
          if (source >= 0)
            std::memcpy(base + moves.target(j) * args.row_bytes, base + source * args.row_bytes, size);
        }
      }
    }
  });
}

}  // namespace

TORCH_LIBRARY_IMPL(lamplighter, CPU, m) {
  m.impl("compact_cache", &compact_cache);
}

}  // namespace lamplighter
