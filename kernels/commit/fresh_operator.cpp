#include <torch/library.h>

#include <cstring>

#include "kernels/common/checks.h"
#include "kernels/commit/fresh_body.h"

namespace lamplighter {
namespace {

using T = const at::Tensor&;
using M = at::Tensor&;

FreshRowsArgs fresh_rows_args(T tokens, T path, T count, T token, T kept_rows, T kept_count, T features,
                              T steps, T position, M fresh_count, M fresh_ids, M fresh_positions,
                              M fresh_features) {
  constexpr const char* kOp = "fresh_rows";
  const at::Device device = tokens.device();
  const auto integers = [&](const char* name, T tensor, std::initializer_list<int64_t> sizes) {
    check_tensor(kOp, name, tensor, at::kLong, device);
    check_shape(kOp, name, tensor, sizes);
    return tensor.const_data_ptr<int64_t>();
  };
  FreshRowsArgs args{};
  args.tokens = integers("tokens", tokens, {kAny, kAny});
  const int64_t images = args.images = tokens.size(0);
  args.nodes = tokens.size(1);
  args.path = integers("path", path, {images, kAny});
  args.width = path.size(1);
  args.count = integers("count", count, {images});
  args.token = integers("token", token, {images});
  args.kept_rows = integers("kept_rows", kept_rows, {images, kAny});
  args.kept_width = kept_rows.size(1);
  args.kept_count = integers("kept_count", kept_count, {images});
  args.steps = integers("steps", steps, {images});
  args.position = integers("position", position, {kAny});
  const int64_t sequences = args.sequences = position.size(0);
  check_activations(kOp, "features", features);
  check_shape(kOp, "features", features, {sequences, kAny, kAny});
  args.rows = features.size(1);
  args.feature_bytes = features.size(2) * static_cast<int64_t>(features.element_size());
  args.features = static_cast<const char*>(features.const_data_ptr());
  integers("fresh_count", fresh_count, {kAny});
  args.draft_sequences = fresh_count.size(0);
  TORCH_CHECK(
      (sequences == images || sequences == 2 * images) &&
          (args.draft_sequences == images || args.draft_sequences == sequences),
      kOp, ": got ", sequences, " sequences, ", args.draft_sequences, " of the drafter and ", images, " images");
  integers("fresh_ids", fresh_ids, {args.draft_sequences, kAny});
  args.fresh_rows = fresh_ids.size(1);
  TORCH_CHECK(args.fresh_rows >= args.kept_width && args.width <= args.kept_width, kOp, ": fresh_ids have ",
              args.fresh_rows, " rows, expected at least ", args.kept_width);
  integers("fresh_positions", fresh_positions, {args.draft_sequences, args.fresh_rows});
  check_tensor(kOp, "fresh_features", fresh_features, features.scalar_type(), device);
  check_shape(kOp, "fresh_features", fresh_features, {args.draft_sequences, args.fresh_rows, features.size(2)});
  args.fresh_count = fresh_count.mutable_data_ptr<int64_t>();
  args.fresh_ids = fresh_ids.mutable_data_ptr<int64_t>();
  args.fresh_positions = fresh_positions.mutable_data_ptr<int64_t>();
  args.fresh_features = static_cast<char*>(fresh_features.mutable_data_ptr());
  return args;
}

// Contents that would lead outside the tensors. Only the CPU reads them.
void check_contents(const FreshRowsArgs& args) {
  for (int64_t image = 0; image < args.images; ++image) {
    const int64_t count = args.count[image];
    TORCH_CHECK(count >= 0 && count < args.width, "fresh_rows: count of image ", image, " is ", count,
                ", expected 0..", args.width - 1);
    for (int64_t j = 0; j <= count; ++j) {
      const int64_t node = args.path[image * args.width + j];
      TORCH_CHECK(node >= 0 && node < args.nodes, "fresh_rows: path of image ", image, " has node ", node,
                  " at index ", j, ", expected 0..", args.nodes - 1);
    }
    for (int64_t r = 0; r < args.kept_width; ++r) {
      const int64_t row = args.kept_rows[image * args.kept_width + r];
      TORCH_CHECK(row < args.rows, "fresh_rows: kept_rows of image ", image, " have row ", row, " of ",
                  args.rows);
    }
  }
}

void fresh_rows_cpu(T tokens, T path, T count, T token, T kept_rows, T kept_count, T features, T steps,
                    T position, M fresh_count, M fresh_ids, M fresh_positions, M fresh_features,
                    int64_t total, int64_t last_position, int64_t first_image_id, int64_t row_end) {
  FreshRowsArgs args = fresh_rows_args(tokens, path, count, token, kept_rows, kept_count, features, steps,
                                       position, fresh_count, fresh_ids, fresh_positions, fresh_features);
  args.total = total;
  args.last_position = last_position;
  args.first_image_id = first_image_id;
  args.row_end = row_end;
  check_contents(args);
  for (int64_t sequence = 0; sequence < args.draft_sequences; ++sequence) {
    for (int64_t r = 0; r < args.fresh_rows; ++r) fresh_row(args, sequence, r, 0, 1);
  }
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(lamplighter, m) {
  m.def(
      "fresh_rows(Tensor tokens, Tensor path, Tensor count, Tensor token, Tensor kept_rows, Tensor kept_count, "
      "Tensor features, Tensor steps, Tensor position, Tensor(a!) fresh_count, Tensor(b!) fresh_ids, "
      "Tensor(c!) fresh_positions, Tensor(d!) fresh_features, int total, int last_position, "
      "int first_image_id, int row_end) -> ()");
}
TORCH_LIBRARY_IMPL(lamplighter, CPU, m) {
  m.impl("fresh_rows", &fresh_rows_cpu);
}

}  // namespace lamplighter
