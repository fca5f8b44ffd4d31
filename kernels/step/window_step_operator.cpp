#include <ATen/ops/empty.h>

#include "kernels/commit/committed_checks.h"
#include "kernels/common/executor.h"
#include "kernels/common/meta.h"
#include "kernels/common/on_cuda.h"
#include "kernels/common/operator.h"
#include "kernels/common/parallel.h"
#include "kernels/common/scratch.h"
#include "kernels/step/window_step.h"
#include "kernels/step/window_step_args.h"

namespace lamplighter {
namespace {

constexpr const char* kWindowStep = "window_step";

CommitArgs window_commit_args(const ops::WindowStep& step, ops::Counters& state) {
  CommitArgs args{};
  const CommitTensors tensors(kWindowStep, step.logits.device());
  args.images = step.seeds.size(0);
  args.nodes = args.width = step.logits.size(1);
  args.tokens = tensors.read("tokens", step.tokens, {args.images, args.nodes});
  args.depths = tensors.read("depths", step.depths, {1, args.nodes});
  args.depth_images = 1;
  set_progress(args, state, tensors);
  set_changed(args, state, tensors);
  return args;
}

FillWindowArgs window_fill_args(const ops::WindowStep& step, const CommitArgs& commit, int64_t vocabulary) {
  TORCH_CHECK(step.fill != WindowFill::sample, kWindowStep, ": fill is sample, expected another one");
  TORCH_CHECK(step.columns > 0, kWindowStep, ": columns is ", step.columns, ", expected at least 1");
  TORCH_CHECK(step.codes > 0 && step.codes <= vocabulary, kWindowStep, ": codes is ", step.codes,
              ", expected 1..", vocabulary);
  FillWindowArgs args{};
  args.steps = commit.steps;
  args.left = commit.root;
  args.codes_so_far = commit.codes;
  args.codes_so_far_columns = commit.code_columns;
  args.images = commit.images;
  args.length = commit.nodes - 1;
  args.vocabulary = vocabulary;
  args.columns = step.columns;
  args.codes = step.codes;
  args.fill = step.fill;
  return args;
}

void set_window(WindowStepArgs& args, const ops::WindowStep& step, ops::WindowState& window) {
  const CommitTensors tensors(kWindowStep, step.logits.device());
  const int64_t images = args.images, nodes = args.commit.nodes, sequences = args.commit.sequences;
  args.window = tensors.change("window tokens", window.tokens, {images, nodes});
  args.guessed = tensors.change<bool>("guessed", window.guessed, {images, nodes});
  tensors.check("window logits", window.logits, step.logits.scalar_type(),
                {step.logits.size(0), nodes, step.logits.size(2)});
  args.logits = window.logits.mutable_data_ptr();
  tensors.check("window statistics", window.statistics, at::kFloat, {images, nodes, kRowStatistics});
  args.statistics = reinterpret_cast<RowStatistics*>(window.statistics.mutable_data_ptr<float>());
  args.masses = tensors.change<double>("masses", window.masses, {images, nodes});
  args.ids = tensors.change("ids", window.ids, {sequences, nodes});
  args.positions = tensors.change("positions", window.positions, {sequences, nodes});
  args.finished = reinterpret_cast<uint32_t*>(tensors.change<int32_t>("finished", window.finished, {images}));
}

}  // namespace

WindowStepArgs window_step_args(const ops::WindowStep& step, ops::WindowState& window, ops::Counters& state) {
  WindowStepArgs args{};
  args.filter = guide_and_filter_args(step.logits, step.filtering);
  args.images = args.filter.images;
  const int64_t nodes = args.filter.logits.rows;
  TORCH_CHECK(nodes > 1 && nodes <= kVerifyNodes, kWindowStep, ": logits have shape ", step.logits.sizes(),
              ", expected 2..", kVerifyNodes, " rows for each sequence");
  const CommitTensors tensors(kWindowStep, step.logits.device());
  args.seeds = tensors.read("seeds", step.seeds, {args.images});
  tensors.check("temperature", step.temperature, at::kFloat, {args.images});
  args.temperature = step.temperature.const_data_ptr<float>();
  if (step.logits_rows.defined())
    args.logits_rows = tensors.read("logits_rows", step.logits_rows, {args.images, nodes});
  args.commit = window_commit_args(step, state);
  args.fill = window_fill_args(step, args.commit, args.filter.logits.vocabulary);
  args.keep = step.keep;
  set_window(args, step, window);
  return args;
}

WindowStepMemory window_step_memory(WindowStepArgs& args, const ops::WindowStep& step) {
  const int64_t images = args.images, nodes = args.filter.logits.rows;
  const at::TensorOptions integers = step.tokens.options();
  constexpr int64_t kVerdict = sizeof(WindowVerdict) / sizeof(int64_t);
  WindowStepMemory memory{filter_statistics(args.filter, step.logits),
                          at::empty({images, nodes, kVerdict}, integers),
                          at::empty({images, nodes}, integers),
                          {at::empty({images, nodes + 1}, integers), at::empty({images}, integers)}};
  args.verdicts = reinterpret_cast<WindowVerdict*>(memory.verdicts.mutable_data_ptr<int64_t>());
  args.commit.path = args.path = memory.path.mutable_data_ptr<int64_t>();
  args.kept_rows = memory.rows.rows.mutable_data_ptr<int64_t>();
  args.kept_count = memory.rows.count.mutable_data_ptr<int64_t>();
  return memory;
}

ops::WindowRows ops::window_step(const WindowStep& step, WindowState& window, Counters& state) {
  return on_device("lamplighter::window_step", step.logits, [&](auto on) -> WindowRows {
    if constexpr (on == On::meta) {
      check_rank(kWindowStep, "logits", step.logits, 3);
      check_dtype(kWindowStep, "tokens", step.tokens, at::kLong);
      const c10::SymInt images = step.tokens.sym_size(0), nodes = step.tokens.sym_size(1);
      return {like(step.tokens, {images, nodes + 1}), like(step.tokens, {images})};
    } else {
      WindowStepArgs args = window_step_args(step, window, state);
      WindowStepMemory memory = window_step_memory(args, step);
      if constexpr (on == On::cuda) {
        on_cuda(step.logits, [&](void* stream) {
          const CudaScratch scratch(step.logits, 1, window_step_cuda_bytes(args));
          window_step_cuda(args, scratch.get<float>(), stream);
        });
      } else {
        check_steps(kWindowStep, args.commit, args.commit.steps);
        const auto kernel = for_isa([](auto isa) { return &window_step_cpu<isa.value>; });
        const size_t bytes = kExecutorCells * sizeof(double) +
                             window_step_floats(args.filter.logits.vocabulary) * sizeof(float);
        parallel_for(0, args.images, 1,
                     [&](int64_t begin, int64_t end) { kernel(args, begin, end, thread_scratch(bytes)); });
      }
      return std::move(memory.rows);
    }
  });
}

}  // namespace lamplighter
