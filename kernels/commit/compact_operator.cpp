#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstring>

#include "kernels/commit/compact.h"
#include "kernels/commit/compact_args.h"
#include "kernels/commit/compact_body.h"
#include "kernels/common/meta.h"
#include "kernels/common/on_cuda.h"
#include "kernels/common/operator.h"
#include "kernels/common/parallel.h"

namespace lamplighter {

// cache: fp32, bf16 or fp16, or rounded rows in int8. S = I or 2 I.
CompactArgs compact_args(at::Tensor& cache, const at::Tensor& lengths, const at::Tensor& path,
                         const at::Tensor& count) {
  constexpr const char* kOp = "compact_cache";
  const at::ScalarType dtype = cache.scalar_type();
  TORCH_CHECK(dtype == at::kFloat || dtype == at::kBFloat16 || dtype == at::kHalf || dtype == at::kChar, kOp,
              ": cache has dtype ", dtype, ", expected float32, bfloat16, float16 or int8");
  check_contiguous(kOp, "cache", cache);
  check_shape(kOp, "cache", cache, {kAny, 2, kAny, kAny, kAny, kAny});
  check_tensor(kOp, "lengths", lengths, at::kLong, cache.device());
  check_shape(kOp, "lengths", lengths, {cache.size(2)});
  check_tensor(kOp, "path", path, at::kLong, cache.device());
  check_shape(kOp, "path", path, {kAny, kAny});
  const int64_t sequences = cache.size(2), images = path.size(0);
  TORCH_CHECK(sequences == images || sequences == 2 * images, kOp, ": cache holds ", sequences,
              " sequences, expected ", images, " or ", 2 * images, " for ", images, " images");
  check_tensor(kOp, "count", count, at::kLong, cache.device());
  check_shape(kOp, "count", count, {images});
  CompactArgs args{};
  args.cache = cache.mutable_data_ptr();
  args.lengths = lengths.const_data_ptr<int64_t>();
  args.path = path.const_data_ptr<int64_t>();
  args.count = count.const_data_ptr<int64_t>();
  args.planes = cache.size(0) * 2;
  args.sequences = sequences;
  args.kv_heads = cache.size(3);
  args.slots = cache.size(4);
  args.row_bytes = cache.size(5) * static_cast<int64_t>(cache.element_size());
  args.images = images;
  args.sequences_per_image = sequences == images ? 1 : 2;
  args.width = path.size(1);
  return args;
}

namespace {

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

void compact_cpu(const CompactArgs& args) {
  constexpr int64_t kBytesPerThread = 1 << 16;  // below, waking another thread costs more
  const int64_t rows = rows_to_move(args);
  if (rows == 0) return;
  const int64_t bytes = std::max<int64_t>(1, rows * args.kv_heads * args.row_bytes);  // of one plane
  const auto size = static_cast<size_t>(args.row_bytes);
  parallel_for(0, args.planes, (kBytesPerThread + bytes - 1) / bytes, [&](int64_t begin, int64_t end) {
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

void ops::compact_cache(at::Tensor& cache, const at::Tensor& lengths, const at::Tensor& path,
                        const at::Tensor& count) {
  on_device("lamplighter::compact_cache", cache, [&](auto on) {
    if constexpr (on == On::meta) {
      check_rank("compact_cache", "cache", cache, 6);
      check_dtype("compact_cache", "lengths", lengths, at::kLong);
      check_rank("compact_cache", "path", path, 2);
      check_dtype("compact_cache", "path", path, at::kLong);
      check_dtype("compact_cache", "count", count, at::kLong);
    } else {
      const CompactArgs args = compact_args(cache, lengths, path, count);
      if constexpr (on == On::cuda) {
        on_cuda(cache, [&](void* stream) { compact_cuda(args, stream); });
      } else {
        check_contents(args);
        compact_cpu(args);
      }
    }
  });
}

TORCH_LIBRARY_FRAGMENT(lamplighter, m) {
  define_adaptor(m, "compact_cache(Tensor(a!) cache, Tensor lengths, Tensor path, Tensor count) -> ()",
                 &ops::compact_cache);
}

}  // namespace lamplighter
