#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/commit/commit.h"
#include "kernels/commit/fresh.h"
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

// Tensors of an operator, each checked where its address is taken.
class CommitTensors {
 public:
  CommitTensors(const char* op, at::Device device) : op_(op), device_(device) {}

  const char* op() const { return op_; }

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

  void check(const char* name, const at::Tensor& tensor, at::ScalarType dtype,
             std::initializer_list<int64_t> sizes) const {
    check_tensor(op_, name, tensor, dtype, device_);
    check_shape(op_, name, tensor, sizes);
  }

 private:
  const char* op_;
  at::Device device_;
};

// Shapes: ops::CommittedTree and ops::Counters.
inline void set_committed(CommittedArgs& args, const ops::CommittedTree& tree, const ops::Counters& state,
                          const CommitTensors& tensors) {
  args.tokens = tensors.read("tokens", tree.tokens, {kAny, kAny});
  const int64_t images = args.images = tree.tokens.size(0);
  args.nodes = tree.tokens.size(1);
  args.path = tensors.read("path", tree.path, {images, kAny});
  args.width = tree.path.size(1);
  args.count = tensors.read("count", tree.count, {images});
  args.token = tensors.read("token", tree.token, {images});
  args.kept_rows = tensors.read("kept_rows", tree.kept_rows, {images, kAny});
  args.kept_width = tree.kept_rows.size(1);
  args.kept_count = tensors.read("kept_count", tree.kept_count, {images});
  tensors.check("position", state.position, at::kLong, {kAny});
  args.sequences = state.position.size(0);
  TORCH_CHECK(args.sequences == images || args.sequences == 2 * images, tensors.op(), ": position has ",
              args.sequences, " sequences, expected ", images, " or ", 2 * images);
  args.total = state.total;
  args.last_position = state.last_position;
  args.first_image_id = state.first_image_id;
  args.row_end = state.row_end;
}

inline CommitArgs commit_args(const ops::CommittedTree& tree, ops::Counters& state) {
  CommitArgs args{};
  const CommitTensors tensors("commit_tokens", tree.tokens.device());
  set_committed(args, tree, state, tensors);
  const int64_t images = args.images;
  args.depths = tensors.read("depths", tree.depths, {kAny, args.nodes});
  args.depth_images = tree.depths.size(0);
  args.status = tensors.read("status", tree.status, {images});
  TORCH_CHECK(args.depth_images == 1 || args.depth_images == images, "commit_tokens: depths have shape ",
              tree.depths.sizes(), ", expected 1 or ", images, " images");
  args.image = tensors.read("image", state.image, {images});
  args.steps = tensors.change("steps", state.steps, {images});
  args.codes = tensors.change("codes", state.codes, {images, kAny});
  args.code_columns = state.codes.size(1);
  TORCH_CHECK(args.width >= 1 && args.code_columns >= state.total + args.width, "commit_tokens: codes have ",
              args.code_columns, " columns, expected ", state.total, " and the ", args.width, " of a path");
  args.root = tensors.change("root", state.root, {images});
  args.bad = tensors.change<bool>("bad", state.bad, {images});
  args.lengths = tensors.change("lengths", state.lengths, {args.sequences});
  args.position = tensors.change("position", state.position, {args.sequences});
  args.report = tensors.change("report", state.report, {images, kAny});
  args.report_depth = report::depth_of(state.report.size(1));
  TORCH_CHECK(state.report.size(1) == report::width(args.report_depth) && args.report_depth + 1 >= args.width,
              "commit_tokens: report has ", state.report.size(1), " columns, expected ",
              report::width(args.width - 1), " for a path of ", args.width);
  return args;
}

// features [S, R, F] of the pass; the rest: ops::FreshRows.
inline FreshRowsArgs fresh_rows_args(const ops::CommittedTree& tree, const at::Tensor& features,
                                     const ops::Counters& state, const ops::FreshRows& fresh) {
  FreshRowsArgs args{};
  const CommitTensors tensors("fresh_rows", tree.tokens.device());
  set_committed(args, tree, state, tensors);
  args.steps = tensors.read("steps", state.steps, {args.images});
  args.position = state.position.const_data_ptr<int64_t>();
  check_activations("fresh_rows", "features", features);
  tensors.check("features", features, features.scalar_type(), {args.sequences, kAny, kAny});
  const int64_t width = features.size(2);
  args.rows = features.size(1);
  args.features = static_cast<const char*>(features.const_data_ptr());
  args.feature_bytes = width * static_cast<int64_t>(features.element_size());
  args.fresh_count = tensors.change("fresh_count", fresh.count, {kAny});
  args.draft_sequences = fresh.count.size(0);
  TORCH_CHECK(args.draft_sequences == args.images || args.draft_sequences == args.sequences,
              "fresh_rows: fresh_count has ", args.draft_sequences, " sequences, expected ", args.images,
              " or ", args.sequences);
  args.fresh_ids = tensors.change("fresh_ids", fresh.ids, {args.draft_sequences, kAny});
  args.fresh_rows = fresh.ids.size(1);
  TORCH_CHECK(args.fresh_rows >= args.kept_width, "fresh_rows: fresh_ids have ", args.fresh_rows,
              " rows, expected at least ", args.kept_width);
  args.fresh_positions =
      tensors.change("fresh_positions", fresh.positions, {args.draft_sequences, args.fresh_rows});
  tensors.check("fresh_features", fresh.features, features.scalar_type(),
                {args.draft_sequences, args.fresh_rows, width});
  args.fresh_features = static_cast<char*>(fresh.features.mutable_data_ptr());
  return args;
}

}  // namespace lamplighter
