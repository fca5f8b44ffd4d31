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

// Tensors of commit_tokens, each checked where its address is taken.
class CommitTensors {
 public:
  explicit CommitTensors(at::Device device) : device_(device) {}

  const int64_t* read(const char* name, const at::Tensor& tensor,
                      std::initializer_list<int64_t> sizes) const {
    check(name, tensor, at::kLong, sizes);
    return tensor.const_data_ptr<int64_t>();
  }

  template <class T = int64_t>
  T* change(const char* name, const at::Tensor& tensor, std::initializer_list<int64_t> sizes) const {
    check(name, tensor, c10::CppTypeToScalarType<T>::value, sizes);
    return tensor.mutable_data_ptr<T>();
  }

 private:
  void check(const char* name, const at::Tensor& tensor, at::ScalarType dtype,
             std::initializer_list<int64_t> sizes) const {
    check_tensor("commit_tokens", name, tensor, dtype, device_);
    check_shape("commit_tokens", name, tensor, sizes);
  }

  at::Device device_;
};

inline void set_committed(CommitArgs& args, const ops::CommittedTree& tree, const CommitTensors& tensors) {
  args.tokens = tensors.read("tokens", tree.tokens, {kAny, kAny});
  const int64_t images = args.images = tree.tokens.size(0);
  args.nodes = tree.tokens.size(1);
  args.depths = tensors.read("depths", tree.depths, {kAny, args.nodes});
  args.depth_images = tree.depths.size(0);
  TORCH_CHECK(args.depth_images == 1 || args.depth_images == images, "commit_tokens: depths have shape ",
              tree.depths.sizes(), ", expected 1 or ", images, " images");
  args.path = tensors.read("path", tree.path, {images, kAny});
  args.width = tree.path.size(1);
  args.count = tensors.read("count", tree.count, {images});
  args.token = tensors.read("token", tree.token, {images});
  args.kept_rows = tensors.read("kept_rows", tree.kept_rows, {images, kAny});
  args.kept_width = tree.kept_rows.size(1);
  args.kept_count = tensors.read("kept_count", tree.kept_count, {images});
}

inline void set_counters(CommitArgs& args, const ops::Counters& state, const CommitTensors& tensors) {
  const int64_t images = args.images;
  args.image = tensors.read("image", state.image, {images});
  args.steps = tensors.change("steps", state.steps, {images});
  args.codes = tensors.change("codes", state.codes, {images, kAny});
  args.code_columns = state.codes.size(1);
  TORCH_CHECK(args.width >= 1 && args.code_columns >= state.total + args.width, "commit_tokens: codes have ",
              args.code_columns, " columns, expected ", state.total, " and the ", args.width, " of a path");
  args.root = tensors.change("root", state.root, {images});
  args.bad = tensors.change<bool>("bad", state.bad, {images});
  args.lengths = tensors.change("lengths", state.lengths, {kAny});
  args.sequences = state.lengths.size(0);
  TORCH_CHECK(args.sequences == images || args.sequences == 2 * images, "commit_tokens: lengths have ",
              args.sequences, " sequences, expected ", images, " or ", 2 * images);
  args.position = tensors.change("position", state.position, {args.sequences});
  args.report = tensors.change("report", state.report, {images, kAny});
  args.report_depth = report::depth_of(state.report.size(1));
  TORCH_CHECK(state.report.size(1) == report::width(args.report_depth) && args.report_depth + 1 >= args.width,
              "commit_tokens: report has ", state.report.size(1), " columns, expected ",
              report::width(args.width - 1), " for a path of ", args.width);
  args.total = state.total;
  args.last_position = state.last_position;
  args.first_image_id = state.first_image_id;
  args.row_end = state.row_end;
}

inline void set_fresh(CommitArgs& args, const ops::Counters& state, const CommitTensors& tensors) {
  if (state.fresh.numel() == 0) return;
  args.fresh = tensors.change("fresh", state.fresh, {kAny});
  args.draft_sequences = state.fresh.size(0);
  TORCH_CHECK(args.draft_sequences == args.images || args.draft_sequences == args.sequences,
              "commit_tokens: fresh has ", args.draft_sequences, " sequences, expected ", args.images, " or ",
              args.sequences);
  args.fresh_ids = tensors.change("fresh_ids", state.fresh_ids, {args.draft_sequences, kAny});
  args.fresh_rows = state.fresh_ids.size(1);
  TORCH_CHECK(args.fresh_rows >= args.kept_width, "commit_tokens: fresh_ids have ", args.fresh_rows,
              " rows, expected at least ", args.kept_width);
  args.fresh_positions =
      tensors.change("fresh_positions", state.fresh_positions, {args.draft_sequences, args.fresh_rows});
}

// Shapes: ops::CommittedTree and ops::Counters.
inline CommitArgs commit_args(const ops::CommittedTree& tree, ops::Counters& state) {
  CommitArgs args{};
  const CommitTensors tensors(tree.tokens.device());
  set_committed(args, tree, tensors);
  set_counters(args, state, tensors);
  set_fresh(args, state, tensors);
  return args;
}

}  // namespace lamplighter
