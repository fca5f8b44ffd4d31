#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include <optional>

#include "base/philox.h"
#include "kernels/common/executor.h"
#include "kernels/common/meta.h"
#include "kernels/common/on_cuda.h"
#include "kernels/common/operator.h"
#include "kernels/sampling/distribution_checks.h"
#include "kernels/sampling/distributions_on_threads.h"
#include "kernels/sampling/sampling.h"
#include "kernels/sampling/sampling_args.h"

namespace lamplighter {

size_t sampling_scratch_bytes(int64_t vocabulary) {
  const size_t bytes = kExecutorCells * sizeof(double) + 2 * static_cast<size_t>(vocabulary) * sizeof(float);
  return (bytes + 63) / 64 * 64;
}

namespace {

// seeds, steps int64 [I].
UniformsArgs uniforms_args(const at::Tensor& seeds, const at::Tensor& steps, int64_t purpose, int64_t count) {
  constexpr int64_t kWords = int64_t{1} << 32;
  check_tensor("uniforms", "seeds", seeds, at::kLong, seeds.device());
  check_shape("uniforms", "seeds", seeds, {kAny});
  check_tensor("uniforms", "steps", steps, at::kLong, seeds.device());
  check_shape("uniforms", "steps", steps, {seeds.size(0)});
  TORCH_CHECK(purpose >= 0 && purpose < kWords, "uniforms: purpose is ", purpose, ", expected 0..2^32-1");
  TORCH_CHECK(count >= 0 && count < kWords, "uniforms: count is ", count, ", expected 0..2^32-1");
  UniformsArgs args{};
  args.seeds = seeds.const_data_ptr<int64_t>();
  args.steps = steps.const_data_ptr<int64_t>();
  args.images = seeds.size(0);
  args.count = count;
  args.purpose = purpose;
  return args;
}

void uniforms_cpu(const UniformsArgs& args) {
  for (int64_t image = 0; image < args.images; ++image) {
    for (int64_t node = 0; node < args.count; ++node) {
      args.out[image * args.count + node] =
          philox_uniform(static_cast<uint64_t>(args.seeds[image]), static_cast<uint32_t>(args.steps[image]),
                         static_cast<uint32_t>(args.purpose), static_cast<uint32_t>(node));
    }
  }
}

at::Tensor filtered_shape(const at::Tensor& logits, const ops::Filtering& filtering) {
  constexpr const char* kOp = "guide_and_filter";
  check_rank(kOp, "logits", logits, 3);
  check_rank(kOp, "guidance", filtering.guidance, 1);
  check_dtype(kOp, "guidance", filtering.guidance, at::kFloat);
  check_dtype(kOp, "temperature", filtering.temperature, at::kFloat);
  check_dtype(kOp, "top_k", filtering.top_k, at::kLong);
  check_dtype(kOp, "top_p", filtering.top_p, at::kFloat);
  return like(logits, {filtering.temperature.sym_size(0), logits.sym_size(1), kRowStatistics}, at::kFloat);
}

}  // namespace

GuideAndFilterArgs guide_and_filter_args(const at::Tensor& logits, const ops::Filtering& filtering) {
  constexpr const char* kOp = "guide_and_filter";
  const auto& [guidance, temperature, top_k, top_p, order] = filtering;
  check_logits(kOp, "logits", logits);
  check_shape(kOp, "temperature", temperature, {kAny});
  GuideAndFilterArgs args{};
  args.images = temperature.size(0);
  args.logits = logit_rows(kOp, "logits", logits, args.images);
  check_tensor(kOp, "temperature", temperature, at::kFloat, logits.device());
  check_tensor(kOp, "guidance", guidance, at::kFloat, logits.device());
  if (guidance.dim() == 2) {
    check_shape(kOp, "guidance", guidance, {args.images, logits.size(1)});
  } else {
    check_shape(kOp, "guidance", guidance, {args.images});
  }
  check_tensor(kOp, "top_k", top_k, at::kLong, logits.device());
  check_shape(kOp, "top_k", top_k, {args.images});
  check_tensor(kOp, "top_p", top_p, at::kFloat, logits.device());
  check_shape(kOp, "top_p", top_p, {args.images});
  TORCH_CHECK(order == "ar" || order == "eagle", kOp, ": order is '", order, "', expected ar or eagle");
  args.guidance = guidance.const_data_ptr<float>();
  args.temperature = temperature.const_data_ptr<float>();
  args.top_k = top_k.const_data_ptr<int64_t>();
  args.top_p = top_p.const_data_ptr<float>();
  args.guidance_by_row = guidance.dim() == 2;
  args.order = order == "ar" ? FilterOrder::kAr : FilterOrder::kEagle;
  return args;
}

at::Tensor filter_statistics(GuideAndFilterArgs& args, const at::Tensor& logits) {
  at::Tensor out =
      at::empty({args.images, args.logits.rows, kRowStatistics}, logits.options().dtype(at::kFloat));
  args.out = reinterpret_cast<RowStatistics*>(out.mutable_data_ptr<float>());
  return out;
}

ProbabilitiesArgs probabilities_args(const ops::Distributions& rows) {
  const CheckedRows checked = distribution_rows("probabilities", "logits", rows);
  ProbabilitiesArgs args{};
  args.rows = checked.rows;
  args.images = checked.images;
  return args;
}

SampleArgs sample_args(const ops::Distributions& rows, const at::Tensor& uniforms,
                       const at::Tensor& temperature) {
  const CheckedRows checked = distribution_rows("sample", "values", rows);
  const at::Device device = rows.values.device();
  check_tensor("sample", "uniforms", uniforms, at::kFloat, device);
  check_shape("sample", "uniforms", uniforms, {checked.images, checked.rows.rows});
  check_tensor("sample", "temperature", temperature, at::kFloat, device);
  check_shape("sample", "temperature", temperature, {checked.images});
  SampleArgs args{};
  args.rows = checked.rows;
  args.uniforms = uniforms.const_data_ptr<float>();
  args.temperature = temperature.const_data_ptr<float>();
  args.images = checked.images;
  return args;
}

namespace ops {

at::Tensor uniforms(const at::Tensor& seeds, const at::Tensor& steps, Purpose purpose, std::int64_t count) {
  return on_device("lamplighter::uniforms", seeds, [&](auto on) {
    if constexpr (on == On::meta) {
      check_rank("uniforms", "seeds", seeds, 1);
      check_dtype("uniforms", "seeds", seeds, at::kLong);
      check_dtype("uniforms", "steps", steps, at::kLong);
      return like(seeds, {seeds.sym_size(0), count}, at::kFloat);
    } else {
      UniformsArgs args = uniforms_args(seeds, steps, static_cast<std::int64_t>(purpose), count);
      at::Tensor out = at::empty({args.images, count}, seeds.options().dtype(at::kFloat));
      args.out = out.mutable_data_ptr<float>();
      if constexpr (on == On::cuda) {
        on_cuda(seeds, [&](void* stream) { uniforms_cuda(args, stream); });
      } else {
        uniforms_cpu(args);
      }
      return out;
    }
  });
}

Distributions guide_and_filter(const at::Tensor& logits, const Filtering& filtering) {
  return on_device("lamplighter::guide_and_filter", logits, [&](auto on) -> Distributions {
    if constexpr (on == On::meta) {
      return {logits, filtered_shape(logits, filtering)};
    } else {
      GuideAndFilterArgs args = guide_and_filter_args(logits, filtering);
      at::Tensor statistics = filter_statistics(args, logits);
      if constexpr (on == On::cuda) {
        on_cuda(logits, [&](void* stream) {
          const CudaScratch scratch(logits, args.images * args.logits.rows,
                                    guide_and_filter_cuda_bytes(args.logits));
          guide_and_filter_cuda(args, scratch.get<float>(), stream);
        });
      } else {
        distributions_on_threads(args, args.logits, sampling_scratch_bytes(args.logits.vocabulary),
                                 for_isa([](auto isa) { return &guide_and_filter_cpu<isa.value>; }));
      }
      return {logits, std::move(statistics)};
    }
  });
}

at::Tensor largest_probabilities(const Distributions& rows) {
  if (!rows.statistics.defined()) return rows.values.amax(-1);
  return rows.statistics.select(-1, offsetof(RowStatistics, norm) / sizeof(float)).contiguous();
}

at::Tensor probabilities(const Distributions& rows) {
  if (!rows.statistics.defined()) return rows.values;
  return on_device("lamplighter::probabilities", rows.values, [&](auto on) {
    if constexpr (on == On::meta) {
      const c10::SymInt images = check_distributions("probabilities", "logits", rows);
      return like(rows.statistics, {images, rows.values.sym_size(1), rows.values.sym_size(2)});
    } else {
      ProbabilitiesArgs args = probabilities_args(rows);
      at::Tensor out =
          at::empty({args.images, args.rows.rows, args.rows.vocabulary}, rows.statistics.options());
      args.out = out.mutable_data_ptr<float>();
      if constexpr (on == On::cuda) {
        on_cuda(out, [&](void* stream) { probabilities_cuda(args, stream); });
      } else {
        distributions_on_threads(args, args.rows, sampling_scratch_bytes(args.rows.vocabulary),
                                 for_isa([](auto isa) { return &probabilities_cpu<isa.value>; }));
      }
      return out;
    }
  });
}

Distributions cat(const std::vector<Distributions>& rows) {
  if (rows.size() == 1) return rows.front();
  std::vector<at::Tensor> values, statistics;
  for (const Distributions& part : rows) {
    values.push_back(part.values);
    if (part.statistics.defined()) statistics.push_back(part.statistics);
  }
  return {at::cat(values, 1), statistics.empty() ? at::Tensor() : at::cat(statistics, 1)};
}

at::Tensor sample(const Distributions& rows, const at::Tensor& uniforms, const at::Tensor& temperature) {
  return on_device("lamplighter::sample", rows.values, [&](auto on) {
    if constexpr (on == On::meta) {
      const c10::SymInt images = check_distributions("sample", "values", rows);
      check_dtype("sample", "uniforms", uniforms, at::kFloat);
      check_dtype("sample", "temperature", temperature, at::kFloat);
      return like(uniforms, {images, rows.values.sym_size(1)}, at::kLong);
    } else {
      SampleArgs args = sample_args(rows, uniforms, temperature);
      at::Tensor out = at::empty({args.images, args.rows.rows}, uniforms.options().dtype(at::kLong));
      args.out = out.mutable_data_ptr<int64_t>();
      if constexpr (on == On::cuda) {
        on_cuda(out, [&](void* stream) {
          const CudaScratch scratch(out, args.images * args.rows.rows, sample_cuda_bytes(args.rows));
          sample_cuda(args, scratch.get<float>(), stream);
        });
      } else {
        distributions_on_threads(args, args.rows, sampling_scratch_bytes(args.rows.vocabulary),
                                 for_isa([](auto isa) { return &sample_cpu<isa.value>; }));
      }
      return out;
    }
  });
}

}  // namespace ops

TORCH_LIBRARY_FRAGMENT(lamplighter, m) {
  using OptionalTensor = std::optional<at::Tensor>;
  define_adaptor(m, "uniforms(Tensor seeds, Tensor steps, int purpose, int count) -> Tensor",
                 [](const at::Tensor& seeds, const at::Tensor& steps, int64_t purpose, int64_t count) {
                   return ops::uniforms(seeds, steps, static_cast<ops::Purpose>(purpose), count);
                 });
  define_adaptor(m,
                 "guide_and_filter(Tensor logits, Tensor guidance, Tensor temperature, Tensor top_k, "
                 "Tensor top_p, str order) -> Tensor statistics",
                 [](const at::Tensor& logits, const at::Tensor& guidance, const at::Tensor& temperature,
                    const at::Tensor& top_k, const at::Tensor& top_p, c10::string_view order) {
                   const ops::Filtering filtering = {guidance, temperature, top_k, top_p, std::string(order)};
                   return ops::guide_and_filter(logits, filtering).statistics;
                 });
  // Here and elsewhere `values` are logits where statistics are given, else probabilities.
  define_adaptor(m, "probabilities(Tensor logits, Tensor statistics) -> Tensor",
                 [](const at::Tensor& logits, const at::Tensor& statistics) {
                   return ops::probabilities({logits, statistics});
                 });
  define_adaptor(
      m, "sample(Tensor values, Tensor uniforms, Tensor temperature, Tensor? statistics=None) -> Tensor",
      [](const at::Tensor& values, const at::Tensor& uniforms, const at::Tensor& temperature,
         const OptionalTensor& statistics) {
        return ops::sample(distributions(values, statistics), uniforms, temperature);
      });
}

}  // namespace lamplighter
