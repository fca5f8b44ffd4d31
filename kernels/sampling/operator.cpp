#include <ATen/ops/empty.h>

#include <optional>
#include <string>

#include "base/philox.h"
#include "kernels/common/executor.h"
#include "kernels/common/meta.h"
#include "kernels/common/on_cuda.h"
#include "kernels/common/operator.h"
#include "kernels/sampling/args.h"
#include "kernels/sampling/over_rows.h"
#include "kernels/sampling/sampling.h"

namespace lamplighter {

size_t sampling_scratch_bytes(int64_t vocabulary) {
  const size_t bytes = kExecutorCells * sizeof(double) + 2 * static_cast<size_t>(vocabulary) * sizeof(float);
  return (bytes + 63) / 64 * 64;
}

namespace {

void uniforms_cpu(const UniformsArgs& args) {
  for (int64_t image = 0; image < args.images; ++image) {
    for (int64_t node = 0; node < args.count; ++node) {
      args.out[image * args.count + node] =
          philox_uniform(static_cast<uint64_t>(args.seeds[image]), static_cast<uint32_t>(args.steps[image]),
                         static_cast<uint32_t>(args.purpose), static_cast<uint32_t>(node));
    }
  }
}

template <On on>
at::Tensor uniforms(const at::Tensor& seeds, const at::Tensor& steps, int64_t purpose, int64_t count) {
  if constexpr (on == On::meta) {
    check_rank("uniforms", "seeds", seeds, 1);
    check_dtype("uniforms", "seeds", seeds, at::kLong);
    check_dtype("uniforms", "steps", steps, at::kLong);
    return like(seeds, {seeds.sym_size(0), count}, at::kFloat);
  } else {
    UniformsArgs args = uniforms_args(seeds, steps, purpose, count);
    at::Tensor out = at::empty({args.images, count}, seeds.options().dtype(at::kFloat));
    args.out = out.mutable_data_ptr<float>();
    if constexpr (on == On::cuda) {
      on_cuda(seeds, [&](void* stream) { uniforms_cuda(args, stream); });
    } else {
      uniforms_cpu(args);
    }
    return out;
  }
}

template <On on>
at::Tensor guide_and_filter(const at::Tensor& logits, const at::Tensor& guidance,
                            const at::Tensor& temperature, const at::Tensor& top_k, const at::Tensor& top_p,
                            c10::string_view order) {
  if constexpr (on == On::meta) {
    check_rank("guide_and_filter", "logits", logits, 3);
    check_rank("guide_and_filter", "guidance", guidance, 1);
    check_dtype("guide_and_filter", "guidance", guidance, at::kFloat);
    check_dtype("guide_and_filter", "temperature", temperature, at::kFloat);
    check_dtype("guide_and_filter", "top_k", top_k, at::kLong);
    check_dtype("guide_and_filter", "top_p", top_p, at::kFloat);
    return like(logits, {temperature.sym_size(0), logits.sym_size(1), kRowStatistics}, at::kFloat);
  } else {
    GuideAndFilterArgs args =
        guide_and_filter_args(logits, {guidance, temperature, top_k, top_p, std::string(order)});
    at::Tensor out = statistics_of(args, logits);
    if constexpr (on == On::cuda) {
      on_cuda(logits, [&](void* stream) {
        const CudaScratch scratch(logits, args.images * args.logits.rows,
                                  guide_and_filter_cuda_bytes(args.logits));
        guide_and_filter_cuda(args, scratch.get<float>(), stream);
      });
    } else {
      over_rows(args, args.logits, sampling_scratch_bytes(args.logits.vocabulary),
                for_isa([](auto isa) { return &guide_and_filter_cpu<isa.value>; }));
    }
    return out;
  }
}

template <On on>
at::Tensor probabilities(const at::Tensor& logits, const at::Tensor& statistics) {
  if constexpr (on == On::meta) {
    const c10::SymInt images = check_distributions("probabilities", "logits", logits, statistics);
    return like(statistics, {images, logits.sym_size(1), logits.sym_size(2)});
  } else {
    ProbabilitiesArgs args = probabilities_args(logits, statistics);
    at::Tensor out = at::empty({args.images, args.rows.rows, args.rows.vocabulary}, statistics.options());
    args.out = out.mutable_data_ptr<float>();
    if constexpr (on == On::cuda) {
      on_cuda(logits, [&](void* stream) { probabilities_cuda(args, stream); });
    } else {
      over_rows(args, args.rows, sampling_scratch_bytes(args.rows.vocabulary),
                for_isa([](auto isa) { return &probabilities_cpu<isa.value>; }));
    }
    return out;
  }
}

template <On on>
at::Tensor draw(const at::Tensor& values, const at::Tensor& uniforms, const at::Tensor& temperature,
                const std::optional<at::Tensor>& statistics) {
  if constexpr (on == On::meta) {
    const c10::SymInt images = check_distributions("draw", "values", values, statistics);
    check_dtype("draw", "uniforms", uniforms, at::kFloat);
    check_dtype("draw", "temperature", temperature, at::kFloat);
    return like(uniforms, {images, values.sym_size(1)}, at::kLong);
  } else {
    DrawArgs args = draw_args(values, uniforms, temperature, or_undefined(statistics));
    at::Tensor out = at::empty({args.images, args.rows.rows}, uniforms.options().dtype(at::kLong));
    args.out = out.mutable_data_ptr<int64_t>();
    if constexpr (on == On::cuda) {
      on_cuda(values, [&](void* stream) {
        const CudaScratch scratch(values, args.images * args.rows.rows, draw_cuda_bytes(args.rows));
        draw_cuda(args, scratch.get<float>(), stream);
      });
    } else {
      over_rows(args, args.rows, sampling_scratch_bytes(args.rows.vocabulary),
                for_isa([](auto isa) { return &draw_cpu<isa.value>; }));
    }
    return out;
  }
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(lamplighter, m) {
  define(m, "uniforms(Tensor seeds, Tensor steps, int purpose, int count) -> Tensor",
         [](auto on) { return &uniforms<on.value>; });
  define(m,
         "guide_and_filter(Tensor logits, Tensor guidance, Tensor temperature, Tensor top_k, Tensor top_p, "
         "str order) -> Tensor statistics",
         [](auto on) { return &guide_and_filter<on.value>; });
  // Here and elsewhere `values` are logits where statistics are given, else probabilities.
  define(m, "probabilities(Tensor logits, Tensor statistics) -> Tensor",
         [](auto on) { return &probabilities<on.value>; });
  define(m, "draw(Tensor values, Tensor uniforms, Tensor temperature, Tensor? statistics=None) -> Tensor",
         [](auto on) { return &draw<on.value>; });
}

}  // namespace lamplighter
