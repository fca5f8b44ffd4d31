#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <algorithm>

#include "kernels/attend/attend_args.h"
#include "kernels/attend/scratch.h"
#include "kernels/common/meta.h"
#include "kernels/common/on_cuda.h"
#include "kernels/common/operator.h"
#include "kernels/common/parallel.h"
#include "kernels/common/scratch.h"

namespace lamplighter {

size_t attend_scratch_bytes(const AttendArgs& args) {
  const int64_t expanded = args.rounded_cache ? 2 * most_keys(args) * args.head_dim : 0;
  return static_cast<size_t>(kQueryBlock * (args.head_dim + score_stride(args)) + expanded) * sizeof(float);
}

namespace {

// Multiply-adds of one thread at least: below, waking another one costs more.
constexpr int64_t kWorkPerThread = 1 << 20;

void check_mask(const AttendArgs& args, int64_t sequence) {
  const int64_t mask = sequence / args.sequences_per_mask;
  const int64_t before = args.starts[sequence] - args.lengths[sequence];
  const int64_t words = (before + args.rows + 63) / 64;
  TORCH_CHECK(args.mask_words >= words, "attend: rows of tree_mask have ", args.mask_words,
              " words, expected at least ", words, " for ", before + args.rows, " columns of sequence ",
              sequence);
  for (int64_t row = 0; row < args.rows; ++row) {
    const int64_t column = before + row;
    const int64_t* bits = args.tree_mask + (mask * args.rows + row) * args.mask_words;
    TORCH_CHECK(((static_cast<uint64_t>(bits[column / 64]) >> (column % 64)) & 1U) != 0, "attend: row ", row,
                " of mask ", mask, " of tree_mask does not see itself");
  }
}

void check_head(const AttendArgs& args) {
  constexpr int64_t kLargestHead = 256;
  TORCH_CHECK(args.head_dim <= kLargestHead, "attend: head_dim of the cache is ", args.head_dim,
              ", expected at most ", kLargestHead, " on CUDA");
}

// Contents that would lead outside the cache or the table. Only the CPU reads them.
void check_contents(const AttendArgs& args) {
  for (int64_t s = 0; s < args.sequences; ++s) {
    const int64_t length = args.lengths[s], start = args.starts[s];
    TORCH_CHECK(start >= 0 && start + args.rows <= args.max_length, "attend: sequence ", s, " holds ", start,
                " keys and gets ", args.rows, " more, the cache has room for ", args.max_length);
    TORCH_CHECK(length >= 0 && length <= start, "attend: sequence ", s, " holds ", start,
                " keys, its prefix has ", length, ", expected 0..", start);
    for (int64_t r = 0; r < args.rows; ++r) {
      const int64_t position = args.positions[s * args.rows + r];
      TORCH_CHECK(position >= 0 && position < args.table_rows, "attend: position ", position, " of row ", r,
                  " in sequence ", s, " is outside the rotary table of ", args.table_rows, " rows");
    }
  }
  if (args.tree_mask == nullptr) return;
  for (int64_t s = 0; s < args.sequences; ++s) check_mask(args, s);
}

void run_cpu(const AttendArgs& args) {
  if (args.rows == 0) return;
  const auto kernel = for_isa([](auto isa) { return &attend_cpu<isa.value>; });
  const int64_t work = args.heads / args.kv_heads * args.rows * most_keys(args) * args.head_dim * 2;
  const int64_t grain = std::max<int64_t>(1, kWorkPerThread / work);
  const size_t bytes = attend_scratch_bytes(args);
  parallel_for(0, args.sequences * args.kv_heads, grain,
               [&](int64_t begin, int64_t end) { kernel(args, begin, end, thread_scratch(bytes)); });
}

at::Tensor attend_shape(const at::Tensor& qkv, const at::Tensor& cache, const at::Tensor& positions,
                        const at::Tensor& lengths, const at::Tensor& tree_mask, const at::Tensor& rotary,
                        int64_t heads) {
  check_rank("attend", "qkv", qkv, 3);
  check_rank("attend", "cache", cache, 6);
  check_cache_dtype(cache, qkv);
  check_dtype("attend", "positions", positions, at::kLong);
  check_dtype("attend", "lengths", lengths, at::kLong);
  check_dtype("attend", "tree_mask", tree_mask, at::kLong);
  check_dtype("attend", "rotary", rotary, at::kFloat);
  return with_last(qkv, head_dim_of(cache, cache.sym_size(5)) * heads);
}

template <On on>
at::Tensor attend(const at::Tensor& qkv, at::Tensor& cache, int64_t layer, const at::Tensor& positions,
                  const at::Tensor& lengths, const at::Tensor& tree_mask, const at::Tensor& rotary,
                  int64_t heads, int64_t kv_heads, double scale) {
  if constexpr (on == On::meta) {
    return attend_shape(qkv, cache, positions, lengths, tree_mask, rotary, heads);
  } else {
    AttendArgs args =
        attend_args(qkv, cache, layer, positions, lengths, tree_mask, rotary, heads, kv_heads, scale);
    if constexpr (on == On::cpu) check_contents(args);
    if constexpr (on == On::cuda) check_head(args);
    at::Tensor out = at::empty({args.sequences, args.rows, heads * args.head_dim}, qkv.options());
    args.out = out.mutable_data_ptr();
    if constexpr (on == On::cpu) run_cpu(args);
    if constexpr (on == On::cuda) {
      const CudaScratch scratch(qkv, 1, attend_cuda_workspace_bytes(args));
      on_cuda(qkv, [&](void* stream) { attend_cuda(args, scratch.get(), stream); });
    }
    return out;
  }
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(lamplighter, m) {
  define(
      m,
      "attend(Tensor qkv, Tensor(a!) cache, int layer, Tensor positions, Tensor lengths, Tensor tree_mask, "
      "Tensor rotary, int heads, int kv_heads, float scale) -> Tensor",
      [](auto on) { return &attend<on.value>; });
}

}  // namespace lamplighter
