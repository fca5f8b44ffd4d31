#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include "kernels/judge/judge.h"

namespace lamplighter {

// The tensors that judge_tree returns, as the parameter block names them.
struct JudgeResults {
  at::Tensor path, count, token, final, status;

  JudgeResults(JudgeArgs& args, const at::Tensor& tokens, const at::Tensor& floats)
      : path(at::empty({args.images, args.depth + 1}, tokens.options())),
        count(at::empty({args.images}, tokens.options())),
        token(at::empty({args.images}, tokens.options())),
        final(at::empty({args.images, args.vocabulary}, floats.options())),
        status(at::empty({args.images}, tokens.options())) {
    args.path = path.mutable_data_ptr<int64_t>();
    args.count = count.mutable_data_ptr<int64_t>();
    args.token = token.mutable_data_ptr<int64_t>();
    args.final = final.mutable_data_ptr<float>();
    args.status = status.mutable_data_ptr<int64_t>();
  }
};

}  // namespace lamplighter
