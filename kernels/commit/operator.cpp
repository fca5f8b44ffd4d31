#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>
#include <tuple>

#include "kernels/commit/commit_args.h"
#include "kernels/commit/commit_body.h"
#include "kernels/commit/compact_args.h"
#include "kernels/commit/compact_body.h"
#include "kernels/commit/fresh_body.h"
#include "kernels/common/meta.h"
#include "kernels/common/on_cuda.h"
#include "kernels/common/operator.h"

namespace lamplighter {
namespace {

// Contents that would lead outside the tensors. Only the CPU reads them.
void check_contents(const char* op, const CommittedArgs& args, const int64_t* steps) {
  for (int64_t image = 0; image < args.images; ++image) {
    const int64_t count = args.count[image], ended = args.kept_count[image] - count;
    TORCH_CHECK(count >= 0 && count < args.width, op, ": count of image ", image, " is ", count,
                ", expected 0..", args.width - 1);
    TORCH_CHECK((ended == 0 || ended == 1) && count + ended < args.kept_width, op, ": kept_count of image ",
                image, " is ", count + ended, ", expected ", count, " or one more, below ", args.kept_width);
    for (int64_t j = 0; j <= count; ++j) {
      const int64_t node = args.path[image * args.width + j];
      TORCH_CHECK(node >= 0 && node < args.nodes, op, ": path of image ", image, " has node ", node,
                  " at index ", j, ", expected 0..", args.nodes - 1);
    }
    TORCH_CHECK(steps[image] >= 0 && steps[image] <= args.total, op, ": image ", image, " has ", steps[image],
                " tokens, expected 0..", args.total);
  }
}

void check_rows(const FreshRowsArgs& args) {
  for (int64_t i = 0; i < args.images * args.kept_width; ++i) {
    TORCH_CHECK(args.kept_rows[i] < args.rows, "fresh_rows: kept_rows of image ", i / args.kept_width,
                " have row ", args.kept_rows[i], ", the features ", args.rows, " rows");
  }
}

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

template <On on>
void compact_cache(at::Tensor& cache, const at::Tensor& lengths, const at::Tensor& path,
                   const at::Tensor& count) {
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
}

template <On on>
std::tuple<at::Tensor, at::Tensor> tree_rows(const at::Tensor& codes, const at::Tensor& depths,
                                             const at::Tensor& position, int64_t first_id,
                                             int64_t last_position) {
  if constexpr (on == On::meta) {
    check_rank("tree_rows", "codes", codes, 2);
    check_same_dtype("tree_rows", "position", position, codes);
    const SymSizes sizes = {position.sym_size(0), codes.sym_size(1)};
    return {like(codes, sizes), like(codes, sizes)};
  } else {
    TreeRowsArgs args = tree_rows_args(codes, depths, position, first_id, last_position);
    at::Tensor ids = at::empty({args.sequences, args.rows}, codes.options());
    at::Tensor positions = at::empty({args.sequences, args.rows}, codes.options());
    args.ids = ids.mutable_data_ptr<int64_t>();
    args.positions = positions.mutable_data_ptr<int64_t>();
    if constexpr (on == On::cuda) {
      on_cuda(codes, [&](void* stream) { tree_rows_cuda(args, stream); });
    } else {
      for (int64_t s = 0; s < args.sequences; ++s) {
        for (int64_t row = 0; row < args.rows; ++row) tree_row(args, s, row);
      }
    }
    return {ids, positions};
  }
}

template <On on>
void commit(const ops::CommittedTree& tree, ops::Counters& state) {
  if constexpr (on == On::meta) {
    check_rank("commit_tokens", "kept_rows", tree.kept_rows, 2);
    check_same_dtype("commit_tokens", "kept_rows", tree.kept_rows, tree.tokens);
  } else {
    const CommitArgs args = commit_args(tree, state);
    if (args.images == 0) return;
    if constexpr (on == On::cuda) {
      on_cuda(tree.tokens, [&](void* stream) { commit_tokens_cuda(args, stream); });
    } else {
      check_contents("commit_tokens", args, args.steps);
      for (int64_t image = 0; image < args.images; ++image) commit_image(args, image, 0, 1, [] {});
    }
  }
}

template <On on>
void commit_tokens(const at::Tensor& tokens, const at::Tensor& depths, const at::Tensor& path,
                   const at::Tensor& count, const at::Tensor& token, const at::Tensor& status,
                   const at::Tensor& kept_rows, const at::Tensor& kept_count, const at::Tensor& image,
                   at::Tensor& steps, at::Tensor& codes, at::Tensor& root, at::Tensor& bad,
                   at::Tensor& lengths, at::Tensor& position, at::Tensor& report, int64_t total,
                   int64_t last_position, int64_t first_image_id, int64_t row_end) {
  ops::Counters state = {total, last_position, first_image_id, row_end,  image, steps, codes,
                         root,  bad,           lengths,        position, report};
  commit<on>({tokens, depths, path, count, token, status, kept_rows, kept_count}, state);
}

template <On on>
void take_fresh(const ops::CommittedTree& tree, const at::Tensor& features, const ops::Counters& state,
                const ops::FreshRows& fresh) {
  if constexpr (on == On::meta) {
    check_rank("fresh_rows", "features", features, 3);
    check_same_dtype("fresh_rows", "fresh_features", fresh.features, features);
  } else {
    const FreshRowsArgs args = fresh_rows_args(tree, features, state, fresh);
    if constexpr (on == On::cuda) {
      on_cuda(features, [&](void* stream) { fresh_rows_cuda(args, stream); });
    } else {
      check_contents("fresh_rows", args, args.steps);
      check_rows(args);
      for (int64_t row = 0; row < args.draft_sequences * args.fresh_rows; ++row)
        fresh_row(args, row / args.fresh_rows, row % args.fresh_rows, 0, 1);
    }
  }
}

template <On on>
void fresh_rows(const at::Tensor& tokens, const at::Tensor& path, const at::Tensor& count,
                const at::Tensor& token, const at::Tensor& kept_rows, const at::Tensor& kept_count,
                const at::Tensor& features, const at::Tensor& steps, const at::Tensor& position,
                at::Tensor& fresh_count, at::Tensor& fresh_ids, at::Tensor& fresh_positions,
                at::Tensor& fresh_features, int64_t total, int64_t last_position, int64_t first_image_id,
                int64_t row_end) {
  ops::Counters state;
  state.total = total;
  state.last_position = last_position;
  state.first_image_id = first_image_id;
  state.row_end = row_end;
  state.steps = steps;
  state.position = position;
  take_fresh<on>({tokens, {}, path, count, token, {}, kept_rows, kept_count}, features, state,
                 {fresh_count, fresh_ids, fresh_positions, fresh_features});
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(lamplighter, m) {
  define(m, "compact_cache(Tensor(a!) cache, Tensor lengths, Tensor path, Tensor count) -> ()",
         [](auto on) { return &compact_cache<on.value>; });
  define(m,
         "tree_rows(Tensor codes, Tensor depths, Tensor position, int first_id, int last_position) "
         "-> (Tensor ids, Tensor positions)",
         [](auto on) { return &tree_rows<on.value>; });
  define(
      m,
      "commit_tokens(Tensor tokens, Tensor depths, Tensor path, Tensor count, Tensor token, "
      "Tensor status, Tensor kept_rows, Tensor kept_count, Tensor image, Tensor(a!) steps, Tensor(b!) codes, "
      "Tensor(c!) root, Tensor(d!) bad, Tensor(e!) lengths, Tensor(f!) position, Tensor(g!) report, "
      "int total, int last_position, int first_image_id, int row_end) -> ()",
      [](auto on) { return &commit_tokens<on.value>; });
  define(m,
         "fresh_rows(Tensor tokens, Tensor path, Tensor count, Tensor token, Tensor kept_rows, "
         "Tensor kept_count, Tensor features, Tensor steps, Tensor position, Tensor(a!) fresh_count, "
         "Tensor(b!) fresh_ids, Tensor(c!) fresh_positions, Tensor(d!) fresh_features, int total, "
         "int last_position, int first_image_id, int row_end) -> ()",
         [](auto on) { return &fresh_rows<on.value>; });
}

}  // namespace lamplighter
