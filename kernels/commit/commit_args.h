#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/commit/commit.h"
#include "kernels/common/checks.h"
#include "kernels/ops.h"

// Operator arguments checked and turned into parameter blocks, for every device. Results stay to be set.
namespace lamplighter {

// codes int64 [I, R]; depths int64 [1 or I, 1 or R]; position int64 [S].
inline TreeRowsArgs tree_rows_args(const at::Tensor& codes, const at::Tensor& depths,
                                   const at::Tensor& position, int64_t first_id, int64_t last_position) {
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

// Shapes: ops::CommittedTree and ops::Progress.
inline CommitArgs commit_args(const ops::CommittedTree& tree, ops::Progress& state) {
  constexpr const char* kOp = "commit_tokens";
  const at::Device device = tree.tokens.device();
  const auto integers = [&](const char* name, const at::Tensor& tensor,
                            std::initializer_list<int64_t> sizes) {
    check_tensor(kOp, name, tensor, at::kLong, device);
    check_shape(kOp, name, tensor, sizes);
    return tensor.const_data_ptr<int64_t>();
  };
  const auto counters = [&](const char* name, const at::Tensor& tensor,
                            std::initializer_list<int64_t> sizes) {
    integers(name, tensor, sizes);
    return tensor.mutable_data_ptr<int64_t>();
  };
  CommitArgs args{};
  args.tokens = integers("tokens", tree.tokens, {kAny, kAny});
  const int64_t images = args.images = tree.tokens.size(0);
  args.nodes = tree.tokens.size(1);
  args.depths = integers("depths", tree.depths, {kAny, args.nodes});
  args.depth_images = tree.depths.size(0);
  TORCH_CHECK(args.depth_images == 1 || args.depth_images == images, kOp, ": depths have shape ",
              tree.depths.sizes(), ", expected 1 or ", images, " images");
  args.path = integers("path", tree.path, {images, kAny});
  args.width = tree.path.size(1);
  args.count = integers("count", tree.count, {images});
  args.token = integers("token", tree.token, {images});
  args.kept_rows = integers("kept_rows", tree.kept_rows, {images, kAny});
  args.kept_width = tree.kept_rows.size(1);
  args.kept_count = integers("kept_count", tree.kept_count, {images});
  args.image = integers("image", state.image, {images});
  args.steps = counters("steps", state.steps, {images});
  args.codes = counters("codes", state.codes, {images, kAny});
  args.code_columns = state.codes.size(1);
  TORCH_CHECK(args.width >= 1 && args.code_columns >= state.total + args.width, kOp, ": codes have ",
              args.code_columns, " columns, expected ", state.total, " and the ", args.width, " of a path");
  args.root = counters("root", state.root, {images});
  check_tensor(kOp, "bad", state.bad, at::kBool, device);
  check_shape(kOp, "bad", state.bad, {images});
  args.bad = state.bad.mutable_data_ptr<bool>();
  args.lengths = counters("lengths", state.lengths, {kAny});
  args.sequences = state.lengths.size(0);
  TORCH_CHECK(args.sequences == images || args.sequences == 2 * images, kOp, ": lengths have ",
              args.sequences, " sequences, expected ", images, " or ", 2 * images);
  args.position = counters("position", state.position, {args.sequences});
  args.report = counters("report", state.report, {images, kAny});
  args.report_depth = report::depth_of(state.report.size(1));
  TORCH_CHECK(state.report.size(1) == report::width(args.report_depth) && args.report_depth + 1 >= args.width,
              kOp, ": report has ", state.report.size(1), " columns, expected ",
              report::width(args.width - 1), " for a path of ", args.width);
  args.total = state.total;
  args.last_position = state.last_position;
  args.first_image_id = state.first_image_id;
  args.row_end = state.row_end;
  if (state.fresh.numel() == 0) return args;
  args.fresh = counters("fresh", state.fresh, {kAny});
  args.draft_sequences = state.fresh.size(0);
  TORCH_CHECK(args.draft_sequences == images || args.draft_sequences == args.sequences, kOp, ": fresh has ",
              args.draft_sequences, " sequences, expected ", images, " or ", args.sequences);
  args.fresh_ids = counters("fresh_ids", state.fresh_ids, {args.draft_sequences, kAny});
  args.fresh_rows = state.fresh_ids.size(1);
  TORCH_CHECK(args.fresh_rows >= args.kept_width, kOp, ": fresh_ids have ", args.fresh_rows,
              " rows, expected at least ", args.kept_width);
  args.fresh_positions =
      counters("fresh_positions", state.fresh_positions, {args.draft_sequences, args.fresh_rows});
  return args;
}

}  // namespace lamplighter
