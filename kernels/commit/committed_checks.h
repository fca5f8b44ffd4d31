#pragma once

#include <ATen/core/Tensor.h>

#include <initializer_list>

#include "kernels/commit/commit.h"
#include "kernels/commit/commit_args.h"
#include "kernels/common/checks.h"

// Checks of what commit_tokens and new_tokens read.
namespace lamplighter {

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

// How far images are. `images`, which is set, have one or two sequences.
inline void set_progress(CommittedArgs& args, const ops::Counters& state, const CommitTensors& tensors) {
  tensors.check("position", state.position, at::kLong, {kAny});
  args.sequences = state.position.size(0);
  TORCH_CHECK(args.sequences == args.images || args.sequences == 2 * args.images, tensors.op(),
              ": position has ", args.sequences, " sequences, expected ", args.images, " or ",
              2 * args.images);
  args.total = state.total;
  args.last_position = state.last_position;
  args.first_image_id = state.first_image_id;
  args.row_end = state.row_end;
}

// What a commit changes; `width` is set.
inline void set_changed(CommitArgs& args, ops::Counters& state, const CommitTensors& tensors) {
  const int64_t images = args.images;
  const char* op = tensors.op();
  args.image = tensors.read("image", state.image, {images});
  args.steps = tensors.change("steps", state.steps, {images});
  args.codes = tensors.change("codes", state.codes, {images, kAny});
  args.code_columns = state.codes.size(1);
  TORCH_CHECK(args.width >= 1 && args.code_columns >= state.total + args.width, op, ": codes have ",
              args.code_columns, " columns, expected ", state.total, " and the ", args.width, " of a path");
  args.root = tensors.change("root", state.root, {images});
  args.bad = tensors.change<bool>("bad", state.bad, {images});
  args.lengths = tensors.change("lengths", state.lengths, {args.sequences});
  args.position = tensors.change("position", state.position, {args.sequences});
  if (state.root_ids.defined()) {
    args.root_ids = tensors.change("root_ids", state.root_ids, {args.sequences, 1});
    args.root_positions = tensors.change("root_positions", state.root_positions, {args.sequences, 1});
  }
  args.report = tensors.change("report", state.report, {images, kAny});
  args.report_depth = report::depth_of(state.report.size(1));
  TORCH_CHECK(state.report.size(1) == report::width(args.report_depth) && args.report_depth + 1 >= args.width,
              op, ": report has ", state.report.size(1), " columns, expected ", report::width(args.width - 1),
              " for a path of ", args.width);
}

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
  set_progress(args, state, tensors);
}

inline void check_steps(const char* op, const CommittedArgs& args, const int64_t* steps) {
  for (int64_t image = 0; image < args.images; ++image) {
    TORCH_CHECK(steps[image] >= 0 && steps[image] <= args.total, op, ": image ", image, " has ", steps[image],
                " tokens, expected 0..", args.total);
  }
}

// Contents that would lead outside the tensors. Only the CPU reads them.
inline void check_contents(const char* op, const CommittedArgs& args, const int64_t* steps) {
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
  }
  check_steps(op, args, steps);
}

}  // namespace lamplighter
