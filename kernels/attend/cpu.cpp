#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "kernels/attend/args.h"
#include "kernels/attend/scratch.h"
#include "kernels/common/isa.h"

namespace lamplighter {

size_t attend_scratch_bytes(const AttendArgs& args) {
  return static_cast<size_t>(kQueryBlock * (args.head_dim + score_stride(args))) * sizeof(float);
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

// Grows to the largest call of the thread and stays.
void* thread_scratch(size_t bytes) {
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  thread_local std::unique_ptr<void, Free> memory;
  thread_local size_t size = 0;
  if (bytes > size) {
    const size_t rounded = (bytes + 4095) / 4096 * 4096;
    memory.reset();
    size = 0;
    memory.reset(std::aligned_alloc(64, rounded));
    TORCH_CHECK(memory != nullptr, "attend: no memory for ", rounded, " bytes of scratch");
    size = rounded;
  }
  return memory.get();
}

at::Tensor attend(const at::Tensor& qkv, at::Tensor& cache, int64_t layer, const at::Tensor& positions,
                  const at::Tensor& lengths, const at::Tensor& tree_mask, const at::Tensor& rotary,
                  int64_t heads, int64_t kv_heads, double scale) {
  AttendArgs args =
      attend_args(qkv, cache, layer, positions, lengths, tree_mask, rotary, heads, kv_heads, scale);
  check_contents(args);
  at::Tensor out = at::empty({args.sequences, args.rows, heads * args.head_dim}, qkv.options());
  args.out = out.mutable_data_ptr();
  if (args.rows == 0) return out;
  const Isa isa = active_isa();
  const auto kernel = isa == Isa::kAvx512 ? attend_avx512 : isa == Isa::kAvx2 ? attend_avx2 : attend_portable;
  const int64_t work = heads / kv_heads * args.rows * most_keys(args) * args.head_dim * 2;
  const int64_t grain = std::max<int64_t>(1, kWorkPerThread / work);
  const size_t bytes = attend_scratch_bytes(args);
  at::parallel_for(0, args.sequences * kv_heads, grain,
                   [&](int64_t begin, int64_t end) { kernel(args, begin, end, thread_scratch(bytes)); });
  return out;
}

}  // namespace

TORCH_LIBRARY_IMPL(lamplighter, CPU, m) {
  m.impl("attend", &attend);
}

}  // namespace lamplighter
