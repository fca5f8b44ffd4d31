#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <optional>

#include "kernels/common/on_cuda.h"
#include "kernels/common/operator.h"
#include "kernels/common/scratch.h"
#include "kernels/window/args.h"

namespace lamplighter {
namespace {

using Two = std::tuple<at::Tensor, at::Tensor>;
using Three = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

// Runs a kernel over all slots of a window, each with scratch of a row.
template <On on, class Args, class Kernels>
void for_slots(const Args& args, const at::Tensor& places, int64_t slots, Kernels kernel_of,
               void (*cuda)(const Args&, float*, void*)) {
  const size_t bytes = static_cast<size_t>(args.judge.vocabulary) * sizeof(float);
  if constexpr (on == On::cuda) {
    on_cuda(places, [&](void* stream) {
      const CudaScratch scratch(places, slots, bytes);
      cuda(args, scratch.get<float>(), stream);
    });
  } else {
    const auto kernel = for_isa(kernel_of);
    at::parallel_for(0, slots, 1, [&](int64_t begin, int64_t end) {
      kernel(args, begin, end, static_cast<float*>(thread_scratch(bytes)));
    });
  }
}

template <On on>
Two renew(const ops::ScoredTree& tree, const at::Tensor& count, bool keep) {
  if constexpr (on == On::meta) {
    check_dtype("renew_window", "count", count, at::kLong);
    const c10::SymInt images = tree.tokens.sym_size(0), slots = tree.tokens.sym_size(1) - 1;
    return {like(tree.tokens, {images, slots}),
            like(tree.uniforms, {images, slots, tree.target.values.sym_size(2)})};
  } else {
    RenewWindowArgs args = renew_window_args(tree, count, keep);
    const int64_t images = args.judge.images, slots = args.judge.nodes - 1;
    at::Tensor tokens = at::empty({images, slots}, tree.tokens.options());
    at::Tensor rows = at::empty({images, slots, args.judge.vocabulary}, tree.uniforms.options());
    args.tokens = tokens.mutable_data_ptr<int64_t>();
    args.rows = rows.mutable_data_ptr<float>();
    for_slots<on>(
        args, count, images * slots, [](auto isa) { return &renew_window_cpu<isa.value>; },
        &renew_window_cuda);
    return {tokens, rows};
  }
}

template <On on>
Three renew_places(const ops::ScoredTree& tree, const at::Tensor& nodes, const at::Tensor& draws) {
  if constexpr (on == On::meta) {
    check_dtype("renew_fan", "nodes", nodes, at::kLong);
    check_dtype("renew_fan", "draws", draws, at::kFloat);
    const c10::SymInt images = nodes.sym_size(0), slots = nodes.sym_size(1);
    const c10::SymInt vocabulary = tree.target.values.sym_size(2);
    return {like(nodes, {images, slots, draws.sym_size(2)}), like(draws, {images, slots, vocabulary}),
            like(draws, {images, slots, vocabulary})};
  } else {
    RenewFanArgs args = renew_fan_args(tree, nodes, draws);
    at::Tensor candidates = at::empty(draws.sizes(), nodes.options());
    at::Tensor rows = at::empty({args.judge.images, args.slots, args.judge.vocabulary}, draws.options());
    at::Tensor left = at::empty_like(rows);
    args.candidates = candidates.mutable_data_ptr<int64_t>();
    args.rows = rows.mutable_data_ptr<float>();
    args.left = left.mutable_data_ptr<float>();
    for_slots<on>(
        args, nodes, args.judge.images * args.slots, [](auto isa) { return &renew_fan_cpu<isa.value>; },
        &renew_fan_cuda);
    return {candidates, rows, left};
  }
}

// The nodes are at most as deep as a chain of them.
ops::ScoredTree window_tree(const at::Tensor& target, const std::optional<at::Tensor>& target_statistics,
                            const at::Tensor& draft, const at::Tensor& tokens, const at::Tensor& parents,
                            const at::Tensor& draft_rows, const at::Tensor& uniforms,
                            const at::Tensor& temperature) {
  return {{target, or_undefined(target_statistics)},
          draft,
          tokens,
          parents,
          draft_rows,
          uniforms,
          temperature,
          tokens.size(1) - 1};
}

template <On on>
Two renew_window(const at::Tensor& target, const at::Tensor& draft, const at::Tensor& tokens,
                 const at::Tensor& parents, const at::Tensor& draft_rows, const at::Tensor& uniforms,
                 const at::Tensor& temperature, const at::Tensor& count, bool keep,
                 const std::optional<at::Tensor>& target_statistics) {
  return renew<on>(
      window_tree(target, target_statistics, draft, tokens, parents, draft_rows, uniforms, temperature),
      count, keep);
}

template <On on>
Three renew_fan(const at::Tensor& target, const at::Tensor& draft, const at::Tensor& tokens,
                const at::Tensor& parents, const at::Tensor& draft_rows, const at::Tensor& uniforms,
                const at::Tensor& temperature, const at::Tensor& nodes, const at::Tensor& draws,
                const std::optional<at::Tensor>& target_statistics) {
  return renew_places<on>(
      window_tree(target, target_statistics, draft, tokens, parents, draft_rows, uniforms, temperature),
      nodes, draws);
}

template <On on>
at::Tensor fill_window(const at::Tensor& tokens, at::Tensor& rows, const at::Tensor& uniforms,
                       const at::Tensor& steps, const at::Tensor& left, const at::Tensor& drawn,
                       int64_t columns, int64_t codes, int64_t fill) {
  if constexpr (on == On::meta) {
    check_dtype("fill_window", "tokens", tokens, at::kLong);
    return like(tokens, {tokens.sym_size(0), tokens.sym_size(1)});
  } else {
    FillWindowArgs args =
        fill_window_args(tokens, rows, {uniforms, steps, left, drawn, columns, codes, window_fill(fill)});
    at::Tensor out = at::empty({args.images, args.slots}, tokens.options());
    args.out = out.mutable_data_ptr<int64_t>();
    if constexpr (on == On::cuda) {
      on_cuda(tokens, [&](void* stream) { fill_window_cuda(args, stream); });
    } else {
      for_isa([](auto isa) { return &fill_window_cpu<isa.value>; })(args, 0, args.images * args.slots);
    }
    return out;
  }
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(lamplighter, m) {
  define(m,
         "renew_window(Tensor target, Tensor draft, Tensor tokens, Tensor parents, Tensor draft_rows, "
         "Tensor uniforms, Tensor temperature, Tensor count, bool keep, Tensor? target_statistics=None) "
         "-> (Tensor tokens, Tensor rows)",
         [](auto on) { return &renew_window<on.value>; });
  define(m,
         "renew_fan(Tensor target, Tensor draft, Tensor tokens, Tensor parents, Tensor draft_rows, "
         "Tensor uniforms, Tensor temperature, Tensor nodes, Tensor draws, Tensor? target_statistics=None) "
         "-> (Tensor candidates, Tensor rows, Tensor left)",
         [](auto on) { return &renew_fan<on.value>; });
  // fill: a place in the enumeration of tree/window_fill.h.
  define(
      m,
      "fill_window(Tensor tokens, Tensor(a!) rows, Tensor uniforms, Tensor steps, Tensor left, Tensor drawn, "
      "int columns, int codes, int fill) -> Tensor",
      [](auto on) { return &fill_window<on.value>; });
}

}  // namespace lamplighter
