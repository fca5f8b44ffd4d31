#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <optional>

#include "kernels/common/on_cuda.h"
#include "kernels/common/operator.h"
#include "kernels/common/parallel.h"
#include "kernels/common/scratch.h"
#include "kernels/sampling/distribution_checks.h"
#include "kernels/verify/verify.h"
#include "kernels/window/window.h"
#include "kernels/window/window_args.h"

namespace lamplighter {
namespace {

using Two = std::tuple<at::Tensor, at::Tensor>;
using Three = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

VerifyArgs window_verify_args(const char* op, const ops::ScoredTree& tree,
                              const ops::VerifyOptions& options) {
  VerifyArgs args = verify_args(tree, options);
  TORCH_CHECK(args.draft.statistics == nullptr, op, ": draft is logits, expected probabilities");
  return args;
}

}  // namespace

RenewWindowArgs renew_window_args(const ops::ScoredTree& tree, const at::Tensor& count, bool keep) {
  constexpr const char* kOp = "renew_window";
  RenewWindowArgs args{};
  args.verify = window_verify_args(kOp, tree, {});
  TORCH_CHECK(args.verify.uniform_count >= 2 * args.verify.nodes, kOp, ": uniforms have shape ",
              tree.uniforms.sizes(), ", expected two for each of ", args.verify.nodes, " nodes");
  check_tensor(kOp, "count", count, at::kLong, tree.target.values.device());
  check_shape(kOp, "count", count, {args.verify.images});
  args.count = count.const_data_ptr<int64_t>();
  args.keep = keep;
  return args;
}

RenewFanArgs renew_fan_args(const ops::ScoredTree& tree, const at::Tensor& nodes, const at::Tensor& samples) {
  constexpr const char* kOp = "renew_fan";
  const at::Device device = tree.target.values.device();
  ops::VerifyOptions options;
  options.rule = Rule::official_pac;
  RenewFanArgs args{};
  args.verify = window_verify_args(kOp, tree, options);
  check_tensor(kOp, "nodes", nodes, at::kLong, device);
  check_shape(kOp, "nodes", nodes, {args.verify.images, kAny});
  check_tensor(kOp, "samples", samples, at::kFloat, device);
  check_shape(kOp, "samples", samples, {args.verify.images, nodes.size(1), kAny});
  args.nodes = nodes.const_data_ptr<int64_t>();
  args.samples = samples.const_data_ptr<float>();
  args.length = nodes.size(1);
  args.count = samples.size(2);
  return args;
}

FillWindowArgs fill_window_args(const at::Tensor& tokens, at::Tensor& rows, const ops::Guesses& guesses) {
  constexpr const char* kOp = "fill_window";
  const at::Device device = tokens.device();
  FillWindowArgs args{};
  check_tensor(kOp, "tokens", tokens, at::kLong, device);
  check_shape(kOp, "tokens", tokens, {kAny, kAny});
  args.images = tokens.size(0);
  args.length = tokens.size(1);
  check_tensor(kOp, "rows", rows, at::kFloat, device);
  check_shape(kOp, "rows", rows, {args.images, args.length, kAny});
  args.vocabulary = rows.size(2);
  check_tensor(kOp, "uniforms", guesses.uniforms, at::kFloat, device);
  check_shape(kOp, "uniforms", guesses.uniforms, {args.images, args.length});
  const auto each = [&](const char* name, const at::Tensor& tensor) {
    check_tensor(kOp, name, tensor, at::kLong, device);
    check_shape(kOp, name, tensor, {args.images});
    return tensor.const_data_ptr<int64_t>();
  };
  args.steps = each("steps", guesses.steps);
  args.left = each("left", guesses.left);
  check_tensor(kOp, "sampled", guesses.codes_so_far, at::kLong, device);
  check_shape(kOp, "sampled", guesses.codes_so_far, {args.images, kAny});
  args.codes_so_far_columns = guesses.codes_so_far.size(1);
  TORCH_CHECK(guesses.columns > 0, kOp, ": columns is ", guesses.columns, ", expected at least 1");
  TORCH_CHECK(guesses.codes > 0 && guesses.codes <= args.vocabulary, kOp, ": codes is ", guesses.codes,
              ", expected 1..", args.vocabulary);
  args.tokens = tokens.const_data_ptr<int64_t>();
  args.uniforms = guesses.uniforms.const_data_ptr<float>();
  args.codes_so_far = guesses.codes_so_far.const_data_ptr<int64_t>();
  args.rows = rows.mutable_data_ptr<float>();
  args.columns = guesses.columns;
  args.codes = guesses.codes;
  args.fill = guesses.fill;
  return args;
}

namespace {

// Runs a kernel over all entries of a window, each with scratch of a row, on the device of `model`.
template <On on, class Args, class Kernels>
void for_entries(const Args& args, const at::Tensor& model, int64_t entries, Kernels kernel_of,
                 void (*cuda)(const Args&, float*, void*)) {
  const size_t bytes = static_cast<size_t>(args.verify.vocabulary) * sizeof(float);
  if constexpr (on == On::cuda) {
    on_cuda(model, [&](void* stream) {
      const CudaScratch scratch(model, entries, bytes);
      cuda(args, scratch.get<float>(), stream);
    });
  } else {
    const auto kernel = for_isa(kernel_of);
    parallel_for(0, entries, 1, [&](int64_t begin, int64_t end) {
      kernel(args, begin, end, static_cast<float*>(thread_scratch(bytes)));
    });
  }
}

}  // namespace

namespace ops {

Two renew_window(const ScoredTree& tree, const at::Tensor& count, bool keep) {
  return on_device("lamplighter::renew_window", tree.tokens, [&](auto on) -> Two {
    if constexpr (on == On::meta) {
      check_dtype("renew_window", "count", count, at::kLong);
      const c10::SymInt images = tree.tokens.sym_size(0), length = tree.tokens.sym_size(1) - 1;
      return {like(tree.tokens, {images, length}),
              like(tree.uniforms, {images, length, tree.target.values.sym_size(2)})};
    } else {
      RenewWindowArgs args = renew_window_args(tree, count, keep);
      const int64_t images = args.verify.images, length = args.verify.nodes - 1;
      at::Tensor tokens = at::empty({images, length}, tree.tokens.options());
      at::Tensor rows = at::empty({images, length, args.verify.vocabulary}, tree.uniforms.options());
      args.tokens = tokens.mutable_data_ptr<int64_t>();
      args.rows = rows.mutable_data_ptr<float>();
      for_entries<on.value>(
          args, count, images * length, [](auto isa) { return &renew_window_cpu<isa.value>; },
          &renew_window_cuda);
      return {tokens, rows};
    }
  });
}

Three renew_fan(const ScoredTree& tree, const at::Tensor& nodes, const at::Tensor& samples) {
  return on_device("lamplighter::renew_fan", nodes, [&](auto on) -> Three {
    if constexpr (on == On::meta) {
      check_dtype("renew_fan", "nodes", nodes, at::kLong);
      check_dtype("renew_fan", "samples", samples, at::kFloat);
      const c10::SymInt images = nodes.sym_size(0), length = nodes.sym_size(1);
      const c10::SymInt vocabulary = tree.target.values.sym_size(2);
      return {like(nodes, {images, length, samples.sym_size(2)}), like(samples, {images, length, vocabulary}),
              like(samples, {images, length, vocabulary})};
    } else {
      RenewFanArgs args = renew_fan_args(tree, nodes, samples);
      at::Tensor candidates = at::empty(samples.sizes(), nodes.options());
      at::Tensor rows =
          at::empty({args.verify.images, args.length, args.verify.vocabulary}, samples.options());
      at::Tensor left = at::empty_like(rows);
      args.candidates = candidates.mutable_data_ptr<int64_t>();
      args.rows = rows.mutable_data_ptr<float>();
      args.left = left.mutable_data_ptr<float>();
      for_entries<on.value>(
          args, nodes, args.verify.images * args.length, [](auto isa) { return &renew_fan_cpu<isa.value>; },
          &renew_fan_cuda);
      return {candidates, rows, left};
    }
  });
}

at::Tensor fill_window(const at::Tensor& tokens, at::Tensor& rows, const Guesses& guesses) {
  return on_device("lamplighter::fill_window", tokens, [&](auto on) {
    if constexpr (on == On::meta) {
      check_dtype("fill_window", "tokens", tokens, at::kLong);
      return like(tokens, {tokens.sym_size(0), tokens.sym_size(1)});
    } else {
      FillWindowArgs args = fill_window_args(tokens, rows, guesses);
      at::Tensor out = at::empty({args.images, args.length}, tokens.options());
      args.out = out.mutable_data_ptr<int64_t>();
      if constexpr (on == On::cuda) {
        on_cuda(tokens, [&](void* stream) { fill_window_cuda(args, stream); });
      } else {
        for_isa([](auto isa) { return &fill_window_cpu<isa.value>; })(args, 0, args.images * args.length);
      }
      return out;
    }
  });
}

}  // namespace ops

namespace {

// A tree whose target rows are as a schema has them. Its nodes are at most as deep as a chain of them.
ops::ScoredTree window_tree(const at::Tensor& target, const std::optional<at::Tensor>& target_statistics,
                            const at::Tensor& draft, const at::Tensor& tokens, const at::Tensor& parents,
                            const at::Tensor& draft_rows, const at::Tensor& uniforms,
                            const at::Tensor& temperature) {
  return {distributions(target, target_statistics),
          draft,
          tokens,
          parents,
          draft_rows,
          uniforms,
          temperature,
          tokens.size(1) - 1};
}

WindowFill window_fill(int64_t value) {
  const auto last = static_cast<int64_t>(kWindowFills.size()) - 1;
  TORCH_CHECK(value >= 0 && value <= last, "fill_window: fill is ", value, ", expected 0..", last);
  return static_cast<WindowFill>(value);
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(lamplighter, m) {
  define_adaptor(m,
                 "renew_window(Tensor target, Tensor draft, Tensor tokens, Tensor parents, "
                 "Tensor draft_rows, Tensor uniforms, Tensor temperature, Tensor count, bool keep, "
                 "Tensor? target_statistics=None) -> (Tensor tokens, Tensor rows)",
                 [](const at::Tensor& target, const at::Tensor& draft, const at::Tensor& tokens,
                    const at::Tensor& parents, const at::Tensor& draft_rows, const at::Tensor& uniforms,
                    const at::Tensor& temperature, const at::Tensor& count, bool keep,
                    const std::optional<at::Tensor>& target_statistics) {
                   return ops::renew_window(window_tree(target, target_statistics, draft, tokens, parents,
                                                        draft_rows, uniforms, temperature),
                                            count, keep);
                 });
  define_adaptor(m,
                 "renew_fan(Tensor target, Tensor draft, Tensor tokens, Tensor parents, Tensor draft_rows, "
                 "Tensor uniforms, Tensor temperature, Tensor nodes, Tensor samples, "
                 "Tensor? target_statistics=None) -> (Tensor candidates, Tensor rows, Tensor left)",
                 [](const at::Tensor& target, const at::Tensor& draft, const at::Tensor& tokens,
                    const at::Tensor& parents, const at::Tensor& draft_rows, const at::Tensor& uniforms,
                    const at::Tensor& temperature, const at::Tensor& nodes, const at::Tensor& samples,
                    const std::optional<at::Tensor>& target_statistics) {
                   return ops::renew_fan(window_tree(target, target_statistics, draft, tokens, parents,
                                                     draft_rows, uniforms, temperature),
                                         nodes, samples);
                 });
  // fill: a number of the enumeration of tree/window_fill.h.
  define_adaptor(m,
                 "fill_window(Tensor tokens, Tensor(a!) rows, Tensor uniforms, Tensor steps, Tensor left, "
                 "Tensor sampled, int columns, int codes, int fill) -> Tensor",
                 [](const at::Tensor& tokens, at::Tensor& rows, const at::Tensor& uniforms,
                    const at::Tensor& steps, const at::Tensor& left, const at::Tensor& codes_so_far,
                    int64_t columns, int64_t codes, int64_t fill) {
                   return ops::fill_window(
                       tokens, rows,
                       {uniforms, steps, left, codes_so_far, columns, codes, window_fill(fill)});
                 });
}

}  // namespace lamplighter
