#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <tuple>

#include "kernels/commit/commit.h"
#include "kernels/commit/commit_args.h"
#include "kernels/commit/commit_body.h"
#include "kernels/commit/committed_checks.h"
#include "kernels/common/meta.h"
#include "kernels/common/on_cuda.h"
#include "kernels/common/operator.h"

namespace lamplighter {

TreeRowsArgs tree_rows_args(const at::Tensor& codes, const at::Tensor& depths, const at::Tensor& position,
                            int64_t first_id, int64_t last_position) {
  constexpr const char* kOp = "tree_rows";
  const at::Device device = codes.device();
  check_tensor(kOp, "codes", codes, at::kLong, device);
  check_shape(kOp, "codes", codes, {kAny, kAny});
  check_tensor(kOp, "depths", depths, at::kLong, device);
  const int64_t images = codes.size(0), rows = codes.size(1);
  TORCH_CHECK(depths.dim() == 2 && (depths.size(0) == 1 || depths.size(0) == images) &&
                  (depths.size(1) == 1 || depths.size(1) == rows),
              kOp, ": depths have shape ", depths.sizes(), ", expected [1 or ", images, ", 1 or ", rows, "]");
  check_tensor(kOp, "position", position, at::kLong, device);
  check_shape(kOp, "position", position, {kAny});
  const int64_t sequences = position.size(0);
  TORCH_CHECK(sequences == images || sequences == 2 * images, kOp, ": position has ", sequences,
              " sequences, expected ", images, " or ", 2 * images, " for ", images, " images");
  TreeRowsArgs args{};
  args.codes = codes.const_data_ptr<int64_t>();
  args.depths = depths.const_data_ptr<int64_t>();
  args.position = position.const_data_ptr<int64_t>();
  args.rows = rows;
  args.sequences = sequences;
  args.sequences_per_image = sequences == images ? 1 : 2;
  args.depth_images = depths.size(0);
  args.depth_rows = depths.size(1);
  args.first_id = first_id;
  args.last_position = last_position;
  return args;
}

CommitArgs commit_args(const ops::CommittedTree& tree, ops::Counters& state) {
  CommitArgs args{};
  const CommitTensors tensors("commit_tokens", tree.tokens.device());
  set_committed(args, tree, state, tensors);
  const int64_t images = args.images;
  args.depths = tensors.read("depths", tree.depths, {kAny, args.nodes});
  args.depth_images = tree.depths.size(0);
  args.status = tensors.read("status", tree.status, {images});
  TORCH_CHECK(args.depth_images == 1 || args.depth_images == images, "commit_tokens: depths have shape ",
              tree.depths.sizes(), ", expected 1 or ", images, " images");
  set_changed(args, state, tensors);
  return args;
}

namespace ops {

std::tuple<at::Tensor, at::Tensor> tree_rows(const at::Tensor& codes, const at::Tensor& depths,
                                             const at::Tensor& position, std::int64_t first_id,
                                             std::int64_t last_position) {
  using Rows = std::tuple<at::Tensor, at::Tensor>;
  return on_device("lamplighter::tree_rows", codes, [&](auto on) -> Rows {
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
  });
}

void commit_tokens(const CommittedTree& tree, Counters& state) {
  on_device("lamplighter::commit_tokens", tree.tokens, [&](auto on) {
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
  });
}

}  // namespace ops

TORCH_LIBRARY_FRAGMENT(lamplighter, m) {
  define_adaptor(m,
                 "tree_rows(Tensor codes, Tensor depths, Tensor position, int first_id, int last_position) "
                 "-> (Tensor ids, Tensor positions)",
                 &ops::tree_rows);
  define_adaptor(
      m,
      "commit_tokens(Tensor tokens, Tensor depths, Tensor path, Tensor count, Tensor token, "
      "Tensor status, Tensor kept_rows, Tensor kept_count, Tensor image, Tensor(a!) steps, Tensor(b!) codes, "
      "Tensor(c!) root, Tensor(d!) bad, Tensor(e!) lengths, Tensor(f!) position, Tensor(g!) report, "
      "int total, int last_position, int first_image_id, int row_end) -> ()",
      [](const at::Tensor& tokens, const at::Tensor& depths, const at::Tensor& path, const at::Tensor& count,
         const at::Tensor& token, const at::Tensor& status, const at::Tensor& kept_rows,
         const at::Tensor& kept_count, const at::Tensor& image, at::Tensor& steps, at::Tensor& codes,
         at::Tensor& root, at::Tensor& bad, at::Tensor& lengths, at::Tensor& position, at::Tensor& report,
         int64_t total, int64_t last_position, int64_t first_image_id, int64_t row_end) {
        ops::Counters state = {total, last_position, first_image_id, row_end,  image, steps, codes,
                               root,  bad,           lengths,        position, report};
        ops::commit_tokens({tokens, depths, path, count, token, status, kept_rows, kept_count}, state);
      });
}

}  // namespace lamplighter
