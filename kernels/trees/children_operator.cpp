#include <ATen/ops/empty.h>

#include <optional>

#include "kernels/common/executor.h"
#include "kernels/common/meta.h"
#include "kernels/common/on_cuda.h"
#include "kernels/common/operator.h"
#include "kernels/sampling/distribution_checks.h"
#include "kernels/sampling/distributions_on_threads.h"
#include "kernels/trees/children.h"
#include "kernels/trees/children_args.h"
#include "kernels/trees/children_body.h"

namespace lamplighter {

size_t sample_children_scratch_bytes(int64_t vocabulary) {
  const size_t bytes = kExecutorCells * sizeof(double) +
                       static_cast<size_t>(vocabulary) * (children::kScratchPerToken + sizeof(float));
  return (bytes + 63) / 64 * 64;
}

SampleChildrenArgs sample_children_args(const ops::Distributions& rows, const ops::ChildSampling& samples) {
  constexpr const char* kOp = "sample_children";
  const CheckedRows checked = distribution_rows(kOp, "values", rows);
  const at::Device device = rows.values.device();
  check_tensor(kOp, "seeds", samples.seeds, at::kLong, device);
  check_shape(kOp, "seeds", samples.seeds, {checked.images});
  check_tensor(kOp, "steps", samples.steps, at::kLong, device);
  check_shape(kOp, "steps", samples.steps, {checked.images});
  check_tensor(kOp, "nodes", samples.nodes, at::kLong, device);
  check_shape(kOp, "nodes", samples.nodes, {checked.rows.rows});
  TORCH_CHECK(samples.count >= 1 && samples.count <= 1024, kOp, ": count is ", samples.count,
              ", expected 1..1024");
  SampleChildrenArgs args{};
  args.rows = checked.rows;
  args.seeds = samples.seeds.const_data_ptr<int64_t>();
  args.steps = samples.steps.const_data_ptr<int64_t>();
  args.nodes = samples.nodes.const_data_ptr<int64_t>();
  args.images = checked.images;
  args.count = samples.count;
  args.sampled = samples.sampled;
  return args;
}

namespace {

using Children = std::tuple<at::Tensor, at::Tensor>;
using Drafted = std::tuple<ops::Distributions, at::Tensor>;

// conditional: whether their conditional probabilities are wanted, too.
Children make_results(SampleChildrenArgs& args, const at::Tensor& seeds, bool conditional) {
  at::Tensor tokens = at::empty({args.images, args.rows.rows, args.count}, seeds.options());
  args.tokens = tokens.mutable_data_ptr<int64_t>();
  if (!conditional) return {tokens, {}};
  at::Tensor probabilities = at::empty(tokens.sizes(), seeds.options().dtype(at::kFloat));
  args.conditional = probabilities.mutable_data_ptr<float>();
  return {tokens, probabilities};
}

template <On on>
Children sample_children(const ops::Distributions& rows, const ops::ChildSampling& samples,
                         bool conditional) {
  if constexpr (on == On::meta) {
    const c10::SymInt images = check_distributions("sample_children", "values", rows);
    check_dtype("sample_children", "seeds", samples.seeds, at::kLong);
    check_dtype("sample_children", "steps", samples.steps, at::kLong);
    check_dtype("sample_children", "nodes", samples.nodes, at::kLong);
    const SymSizes sizes = {images, rows.values.sym_size(1), samples.count};
    return {like(samples.seeds, sizes), like(samples.seeds, sizes, at::kFloat)};
  } else {
    SampleChildrenArgs args = sample_children_args(rows, samples);
    Children results = make_results(args, samples.seeds, conditional);
    const size_t bytes = sample_children_scratch_bytes(args.rows.vocabulary);
    if constexpr (on == On::cuda) {
      const CudaScratch scratch(samples.seeds, args.images * args.rows.rows, bytes);
      on_cuda(samples.seeds, [&](void* stream) { sample_children_cuda(args, scratch.get(), stream); });
    } else {
      distributions_on_threads(args, args.rows, bytes,
                               for_isa([](auto isa) { return &sample_children_cpu<isa.value>; }));
    }
    return results;
  }
}

// Both in one launch.
Drafted draft_in_one(const at::Tensor& logits, const ops::Filtering& filtering,
                     const ops::ChildSampling& samples) {
  GuideAndFilterArgs filter = guide_and_filter_args(logits, filtering);
  const ops::Distributions rows(logits, filter_statistics(filter, logits));
  SampleChildrenArgs sample = sample_children_args(rows, samples);
  const at::Tensor tokens = std::get<0>(make_results(sample, samples.seeds, false));
  const int64_t blocks = sample.images * sample.rows.rows;
  const CudaScratch scratch(logits, blocks, sample_children_scratch_bytes(sample.rows.vocabulary));
  on_cuda(logits, [&](void* stream) {
    const CudaScratch memory(logits, blocks, draft_children_cuda_bytes(filter.logits));
    draft_children_cuda(filter, sample, scratch.get(), memory.get<float>(), stream);
  });
  return {rows, tokens};
}

}  // namespace

namespace ops {

std::tuple<at::Tensor, at::Tensor> sample_children(const Distributions& rows, const ChildSampling& samples) {
  return on_device("lamplighter::sample_children", rows.values,
                   [&](auto on) { return lamplighter::sample_children<on.value>(rows, samples, true); });
}

std::tuple<Distributions, at::Tensor> draft_children(const at::Tensor& logits, const Filtering& filtering,
                                                     const ChildSampling& samples) {
  return on_device("lamplighter::draft_children", logits, [&](auto on) -> Drafted {
    if constexpr (on == On::cuda) {
      return draft_in_one(logits, filtering, samples);
    } else {  // one after the other: a CPU launches nothing
      const Distributions rows = guide_and_filter(logits, filtering);
      return {rows, std::get<0>(lamplighter::sample_children<on.value>(rows, samples, false))};
    }
  });
}

}  // namespace ops

TORCH_LIBRARY_FRAGMENT(lamplighter, m) {
  define_adaptor(
      m,
      "sample_children(Tensor values, Tensor seeds, Tensor steps, Tensor nodes, int count, "
      "bool sampled, Tensor? statistics=None) -> (Tensor tokens, Tensor conditional)",
      [](const at::Tensor& values, const at::Tensor& seeds, const at::Tensor& steps, const at::Tensor& nodes,
         int64_t count, bool sampled, const std::optional<at::Tensor>& statistics) {
        return ops::sample_children(distributions(values, statistics), {seeds, steps, nodes, count, sampled});
      });
  define_adaptor(
      m,
      "draft_children(Tensor logits, Tensor guidance, Tensor temperature, Tensor top_k, Tensor top_p, "
      "str order, Tensor seeds, Tensor steps, Tensor nodes, int count, bool sampled) "
      "-> (Tensor statistics, Tensor tokens)",
      [](const at::Tensor& logits, const at::Tensor& guidance, const at::Tensor& temperature,
         const at::Tensor& top_k, const at::Tensor& top_p, c10::string_view order, const at::Tensor& seeds,
         const at::Tensor& steps, const at::Tensor& nodes, int64_t count, bool sampled) {
        auto [rows, tokens] =
            ops::draft_children(logits, {guidance, temperature, top_k, top_p, std::string(order)},
                                {seeds, steps, nodes, count, sampled});
        return std::tuple(rows.statistics, tokens);
      });
}

}  // namespace lamplighter
