#include "kernels/attend/cuda_general.h"
#include "kernels/attend/plan.h"
#include "kernels/common/cuda/launch.h"

namespace lamplighter {
namespace {

template <class Cache, int kPack>
void attend_rows(const AttendArgs& args, const Workspace& workspace, Rows rows, cudaStream_t stream) {
  const int64_t queries = rows.count * (args.heads / args.kv_heads);
  const auto launch = [&](auto kernel, int64_t per_block) {
    const int64_t tiles = (queries + per_block - 1) / per_block;
    const dim3 grid(static_cast<unsigned>(workspace.splits), static_cast<unsigned>(args.kv_heads * tiles),
                    static_cast<unsigned>(args.sequences));
    kernel<<<grid, kKeys, 0, stream>>>(args, workspace, rows);
  };
  if (queries == 1) {
    launch(partial_kernel<Cache, kPack, 1>, 1);
  } else {
    launch(partial_kernel<Cache, kPack, 8>, 8);
  }
  const int64_t elements = args.sequences * rows.count * args.heads * args.head_dim;
  combine_kernel<typename Cache::Element>
      <<<grid_size((elements + kRowThreads - 1) / kRowThreads), kRowThreads, 0, stream>>>(args, workspace,
                                                                                          rows);
}

template <class Cache>
void attend_general(const AttendArgs& args, const Workspace& workspace, cudaStream_t stream) {
  using T = typename Cache::Element;
  append_kernel<Cache><<<grid_size(args.sequences * args.rows), kRowThreads, 0, stream>>>(
      args, static_cast<T*>(workspace.queries));
  constexpr int kPack = 16 / static_cast<int>(sizeof(T));
  const bool packed =
      args.rounded_cache ? args.head_dim % kPack == 0 : pack_size<T>(args.head_dim, {args.keys}) == kPack;
  for (int64_t begin = 0; begin < args.rows; begin += kRowsPerPass) {
    const int64_t left = args.rows - begin;
    const Rows rows = {static_cast<int>(begin), static_cast<int>(left < kRowsPerPass ? left : kRowsPerPass)};
    if (packed) {
      attend_rows<Cache, kPack>(args, workspace, rows, stream);
    } else {
      attend_rows<Cache, 1>(args, workspace, rows, stream);
    }
  }
}

}  // namespace

size_t attend_cuda_workspace_bytes(const AttendArgs& args) {
  size_t bytes = 0;
  if (attend_has_spans(args)) {
    span_results(args, nullptr, &bytes);
  } else {
    split_workspace(args, nullptr, &bytes);
  }
  return bytes;
}

void attend_cuda(const AttendArgs& args, void* workspace_memory, void* stream) {
  if (args.rows == 0 || args.sequences == 0) return;
  if (attend_has_spans(args)) return attend_spans_cuda(args, workspace_memory, stream);
  size_t bytes = 0;
  const Workspace workspace = split_workspace(args, workspace_memory, &bytes);
  with_element_type(args.type, [&](auto element) {
    using T = decltype(element);
    const auto attend = args.rounded_cache ? attend_general<RoundedCache<T>> : attend_general<PlainCache<T>>;
    attend(args, workspace, cuda_stream(stream));
  });
}

}  // namespace lamplighter
