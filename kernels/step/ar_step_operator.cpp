#include <ATen/ops/empty.h>

#include <optional>

#include "kernels/commit/committed_checks.h"
#include "kernels/common/meta.h"
#include "kernels/common/on_cuda.h"
#include "kernels/common/operator.h"
#include "kernels/sampling/distributions_on_threads.h"
#include "kernels/step/ar_step.h"
#include "kernels/step/ar_step_args.h"

namespace lamplighter {
namespace {

constexpr const char* kArStep = "ar_step";

CommitArgs root_commit_args(const at::Tensor& seeds, ops::Counters& state) {
  CommitArgs args{};
  const CommitTensors tensors(kArStep, seeds.device());
  args.images = seeds.size(0);
  args.nodes = args.width = 1;
  set_progress(args, state, tensors);
  set_changed(args, state, tensors);
  args.tokens = args.root;
  return args;
}

}  // namespace

ArStepArgs ar_step_args(const ops::ArStep& step, ops::Counters& state) {
  ArStepArgs args{};
  args.filter = guide_and_filter_args(step.logits, step.filtering);
  args.images = args.filter.images;
  TORCH_CHECK(step.logits.size(1) == 1, kArStep, ": logits have shape ", step.logits.sizes(),
              ", expected one row for each sequence");
  const CommitTensors tensors(kArStep, step.logits.device());
  args.seeds = tensors.read("seeds", step.seeds, {args.images});
  tensors.check("temperature", step.temperature, at::kFloat, {args.images});
  args.temperature = step.temperature.const_data_ptr<float>();
  if (step.logits_rows.defined())
    args.logits_rows = tensors.read("logits_rows", step.logits_rows, {args.images, 1});
  args.commit = root_commit_args(step.seeds, state);
  args.purpose = static_cast<int64_t>(ops::Purpose::accept);
  return args;
}

void ops::ar_step(const ArStep& step, Counters& state) {
  on_device("lamplighter::ar_step", step.logits, [&](auto on) {
    if constexpr (on == On::meta) {
      check_rank(kArStep, "logits", step.logits, 3);
      check_dtype(kArStep, "seeds", step.seeds, at::kLong);
      check_dtype(kArStep, "temperature", step.temperature, at::kFloat);
    } else {
      ArStepArgs args = ar_step_args(step, state);
      const at::Tensor statistics = filter_statistics(args.filter, step.logits);
      if constexpr (on == On::cuda) {
        on_cuda(step.logits, [&](void* stream) {
          const CudaScratch scratch(step.logits, 1, ar_step_cuda_bytes(args));
          ar_step_cuda(args, scratch.get<float>(), stream);
        });
      } else {
        check_steps(kArStep, args.commit, args.commit.steps);
        distributions_on_threads(args, args.filter.logits,
                                 sampling_scratch_bytes(args.filter.logits.vocabulary),
                                 for_isa([](auto isa) { return &ar_step_cpu<isa.value>; }));
      }
    }
  });
}

TORCH_LIBRARY_FRAGMENT(lamplighter, m) {
  using OptionalTensor = std::optional<at::Tensor>;
  define_adaptor(
      m,
      "ar_step(Tensor logits, Tensor guidance, Tensor filter_temperature, Tensor top_k, Tensor top_p, "
      "str order, Tensor seeds, Tensor temperature, Tensor? logits_rows, Tensor image, Tensor(a!) steps, "
      "Tensor(b!) codes, Tensor(c!) root, Tensor(d!) bad, Tensor(e!) lengths, Tensor(f!) position, "
      "Tensor(g!) report, int total, int last_position, int first_image_id, int row_end) -> ()",
      [](const at::Tensor& logits, const at::Tensor& guidance, const at::Tensor& filter_temperature,
         const at::Tensor& top_k, const at::Tensor& top_p, c10::string_view order, const at::Tensor& seeds,
         const at::Tensor& temperature, const OptionalTensor& logits_rows, const at::Tensor& image,
         at::Tensor& steps, at::Tensor& codes, at::Tensor& root, at::Tensor& bad, at::Tensor& lengths,
         at::Tensor& position, at::Tensor& report, int64_t total, int64_t last_position,
         int64_t first_image_id, int64_t row_end) {
        ops::Counters state = {total, last_position, first_image_id, row_end,  image, steps, codes,
                               root,  bad,           lengths,        position, report};
        ops::ar_step({logits,
                      {guidance, filter_temperature, top_k, top_p, std::string(order)},
                      seeds,
                      temperature,
                      logits_rows.value_or(at::Tensor())},
                     state);
      });
}

}  // namespace lamplighter
