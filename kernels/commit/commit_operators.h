#pragma once

#include <ATen/ops/empty.h>

#include <tuple>

#include "kernels/commit/commit_args.h"

// The operators of cycle.h, the same for every device but for who runs the kernels.
namespace lamplighter {

// As the kernels of a dispatch key. OnDevice(tensor)(args) runs one of them on the device of a tensor.
template <class OnDevice>
struct CycleOperators {
  static std::tuple<at::Tensor, at::Tensor> tree_rows(const at::Tensor& codes, const at::Tensor& depths,
                                                      const at::Tensor& position, int64_t first_id,
                                                      int64_t last_position) {
    TreeRowsArgs args = tree_rows_args(codes, depths, position, first_id, last_position);
    const OnDevice run(codes);
    at::Tensor ids = at::empty({args.sequences, args.rows}, codes.options());
    at::Tensor positions = at::empty({args.sequences, args.rows}, codes.options());
    args.ids = ids.mutable_data_ptr<int64_t>();
    args.positions = positions.mutable_data_ptr<int64_t>();
    run(args);
    return {ids, positions};
  }

  static at::Tensor commit_tokens(const at::Tensor& tokens, const at::Tensor& depths, const at::Tensor& path,
                                  const at::Tensor& count, const at::Tensor& token,
                                  const at::Tensor& kept_rows, const at::Tensor& kept_count,
                                  const at::Tensor& image, at::Tensor& steps, at::Tensor& codes,
                                  at::Tensor& root, at::Tensor& bad, at::Tensor& lengths,
                                  at::Tensor& position, at::Tensor& report, at::Tensor& fresh,
                                  at::Tensor& fresh_ids, at::Tensor& fresh_positions, int64_t total,
                                  int64_t last_position, int64_t first_image_id, int64_t row_end) {
    ops::Progress state = {total,    last_position, first_image_id, row_end,   image,
                           steps,    codes,         root,           bad,       lengths,
                           position, report,        fresh,          fresh_ids, fresh_positions};
    CommitArgs args = commit_args({tokens, depths, path, count, token, kept_rows, kept_count}, state);
    const OnDevice run(tokens);
    at::Tensor rows = at::empty({args.sequences, args.kept_width}, tokens.options());
    args.feature_rows = rows.mutable_data_ptr<int64_t>();
    if (args.images > 0) run(args);
    return rows;
  }
};

}  // namespace lamplighter
