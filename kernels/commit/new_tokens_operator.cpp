#include <ATen/core/Tensor.h>

#include "kernels/commit/committed_checks.h"
#include "kernels/commit/new_tokens.h"
#include "kernels/commit/new_tokens_args.h"
#include "kernels/commit/new_tokens_body.h"
#include "kernels/common/meta.h"
#include "kernels/common/on_cuda.h"
#include "kernels/common/operator.h"

namespace lamplighter {

NewTokensArgs new_tokens_args(const ops::CommittedTree& tree, const at::Tensor& features,
                              const ops::Counters& state, const ops::NewTokens& fresh) {
  NewTokensArgs args{};
  const CommitTensors tensors("new_tokens", tree.tokens.device());
  set_committed(args, tree, state, tensors);
  args.steps = tensors.read("steps", state.steps, {args.images});
  args.position = state.position.const_data_ptr<int64_t>();
  check_activations("new_tokens", "features", features);
  tensors.check("features", features, features.scalar_type(), {args.sequences, kAny, kAny});
  const int64_t width = features.size(2);
  args.rows = features.size(1);
  args.features = static_cast<const char*>(features.const_data_ptr());
  args.feature_bytes = width * static_cast<int64_t>(features.element_size());
  args.new_count = tensors.change("new_count", fresh.count, {kAny});
  args.draft_sequences = fresh.count.size(0);
  TORCH_CHECK(args.draft_sequences == args.images || args.draft_sequences == args.sequences,
              "new_tokens: new_count has ", args.draft_sequences, " sequences, expected ", args.images,
              " or ", args.sequences);
  args.new_ids = tensors.change("new_ids", fresh.ids, {args.draft_sequences, kAny});
  args.new_tokens = fresh.ids.size(1);
  TORCH_CHECK(args.new_tokens >= args.kept_width, "new_tokens: new_ids have ", args.new_tokens,
              " rows, expected at least ", args.kept_width);
  args.new_positions =
      tensors.change("new_positions", fresh.positions, {args.draft_sequences, args.new_tokens});
  tensors.check("new_features", fresh.features, features.scalar_type(),
                {args.draft_sequences, args.new_tokens, width});
  args.new_features = static_cast<char*>(fresh.features.mutable_data_ptr());
  return args;
}

namespace {

void check_rows(const NewTokensArgs& args) {
  for (int64_t i = 0; i < args.images * args.kept_width; ++i) {
    TORCH_CHECK(args.kept_rows[i] < args.rows, "new_tokens: kept_rows of image ", i / args.kept_width,
                " have row ", args.kept_rows[i], ", the features ", args.rows, " rows");
  }
}

}  // namespace

void ops::new_tokens(const CommittedTree& tree, const at::Tensor& features, const Counters& state,
                     NewTokens& fresh) {
  on_device("lamplighter::new_tokens", features, [&](auto on) {
    if constexpr (on == On::meta) {
      check_rank("new_tokens", "features", features, 3);
      check_same_dtype("new_tokens", "new_features", fresh.features, features);
    } else {
      const NewTokensArgs args = new_tokens_args(tree, features, state, fresh);
      if constexpr (on == On::cuda) {
        on_cuda(features, [&](void* stream) { new_tokens_cuda(args, stream); });
      } else {
        check_contents("new_tokens", args, args.steps);
        check_rows(args);
        for (int64_t row = 0; row < args.draft_sequences * args.new_tokens; ++row)
          new_token(args, row / args.new_tokens, row % args.new_tokens, 0, 1);
      }
    }
  });
}

TORCH_LIBRARY_FRAGMENT(lamplighter, m) {
  define_adaptor(
      m,
      "new_tokens(Tensor tokens, Tensor path, Tensor count, Tensor token, Tensor kept_rows, "
      "Tensor kept_count, Tensor features, Tensor steps, Tensor position, Tensor(a!) new_count, "
      "Tensor(b!) new_ids, Tensor(c!) new_positions, Tensor(d!) new_features, int total, "
      "int last_position, int first_image_id, int row_end) -> ()",
      [](const at::Tensor& tokens, const at::Tensor& path, const at::Tensor& count, const at::Tensor& token,
         const at::Tensor& kept_rows, const at::Tensor& kept_count, const at::Tensor& features,
         const at::Tensor& steps, const at::Tensor& position, at::Tensor& new_count, at::Tensor& new_ids,
         at::Tensor& new_positions, at::Tensor& new_features, int64_t total, int64_t last_position,
         int64_t first_image_id, int64_t row_end) {
        ops::Counters state;
        state.total = total;
        state.last_position = last_position;
        state.first_image_id = first_image_id;
        state.row_end = row_end;
        state.steps = steps;
        state.position = position;
        ops::NewTokens fresh = {new_count, new_ids, new_positions, new_features};
        ops::new_tokens({tokens, {}, path, count, token, {}, kept_rows, kept_count}, features, state, fresh);
      });
}

}  // namespace lamplighter
