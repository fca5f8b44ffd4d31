#include "measure/cycles.h"

#include <ATen/TensorOperators.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/ops/tensor.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <ctime>
#include <memory>
#include <utility>

#include "base/message.h"
#include "base/stopwatch.h"
#include "base/suggestion.h"
#include "decode/cycle.h"
#include "decode/prefill.h"
#include "decode/replay.h"
#include "kernels/common/parallel.h"
#include "lamplighter/error.h"
#include "measure/statistics.h"

namespace lamplighter {
namespace {

// Measures milliseconds between laps. A lap waits until the device has finished the queued work.
class Timer {
 public:
  Timer(Clock clock, const c10::Device& device) : clock_(clock), device_(device), last_(now()) {}
  double lap() {
    const double before = std::exchange(last_, now());
    return last_ - before;
  }

 private:
  double now() const {
    if (device_.is_cuda()) at::detail::getCUDAHooks().deviceSynchronize(device_.index());
    if (clock_ == Clock::processor) return 1000.0 * static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
    const auto time = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double, std::milli>(time).count();
  }

  Clock clock_;
  c10::Device device_;
  double last_;
};

// A method whose state stands in the middle of an image.
struct Runner {
  Models models;
  const Method* method = nullptr;
  std::unique_ptr<Replay> replay;
  DecodeState state;
  std::vector<at::Tensor> middle;  // snapshot of `state`
  std::vector<at::Tensor> script;  // accepted paths of a block's cycles, see scripted()
  at::Tensor accepted;             // the running cycle's, at a fixed address for CUDA graphs
};

// Destroys runners in reverse order: each restores the CUDA stream that was current before it.
struct Runners : std::vector<Runner> {
  ~Runners() {
    while (!empty()) pop_back();
  }
};

// The scripted result of verification: the path of `count` first children and its length, for every image.
// int64 [I * (D + 2)]: paths [I, D + 1], then counts [I].
at::Tensor scripted(const Tree& tree, std::int64_t count, std::int64_t images, const c10::Device& device) {
  std::vector<std::int64_t> path(static_cast<std::size_t>(tree.max_depth()) + 1, -1);
  std::int64_t node = 0, accepted = 0;
  path[0] = 0;
  while (accepted < count && tree.child_count(node) > 0) {
    node = tree.child_begin[static_cast<std::size_t>(node)];
    path[static_cast<std::size_t>(++accepted)] = node;
  }
  std::vector<std::int64_t> all;
  for (std::int64_t image = 0; image < images; ++image) all.insert(all.end(), path.begin(), path.end());
  all.insert(all.end(), static_cast<std::size_t>(images), accepted);
  return at::tensor(all, at::kLong).to(device);
}

// Samples the first token, then skips half of the rows as if they had been generated, up to the second code
// of a row.
DecodeState go_to_middle(const Models& models, const Method& method, const Prompts& prompts,
                         const std::vector<DecodeRequest>& requests, const Grid& grid) {
  DecodeState state = make_state(models, method, prompts, requests, grid);
  state.run.cache.zero_();
  const Scores scores = prefill(models, prompts, state);
  const Draft last = last_token(state);
  commit(state, last, scores, verify(models, method, state, last, scores));
  const std::int64_t rows = rows_to_middle(grid);
  ops::Counters& counters = state.run.counters;
  counters.steps.add_(grid.rows / 2 * grid.columns);
  for (at::Tensor* counts : {&counters.lengths, &counters.position, &counters.root_positions})
    counts->add_(rows);
  state.draft_method->advance_for_benchmark(rows);
  return state;
}

// Runs a cycle of decode(), but accepts the scripted path, if anything is drafted.
void run_scripted(Runner& runner, const OnStage& done) {
  DecodeState& state = runner.state;
  if (!state.draft_method->drafts()) return run_cycle(runner.models, *runner.method, state, done);
  run_cycle(runner.models, *runner.method, state, done,
            [&](Draft& tree, const Scores& scores, Verified& verified) {
              // Nodes past the end of a row are padding; to measure, they count as codes like the others.
              if (state.run.columns > 0) verified.tokens = tree.tokens = tree.tokens.clamp_min(0);
              const std::int64_t paths = runner.accepted.size(0) - state.run.images();
              verified.walk.path = runner.accepted.narrow(0, 0, paths).view({state.run.images(), -1});
              verified.walk.count = runner.accepted.narrow(0, paths, state.run.images());
              verified.kept = kept_rows(verified.walk, scores.logits_row);
            });
}

// Runs one block from the middle of the image; returns milliseconds per cycle.
StageTimes run_block(Runner& runner, const CycleOptions& options) {
  restore(runner.state, runner.middle);
  StageTimes times;
  Timer watch(options.clock, runner.state.run.counters.steps.device());
  for (const at::Tensor& wanted : runner.script) {
    runner.accepted.copy_(wanted);
    if (options.stages) {
      watch.lap();
      run_scripted(runner, [&](double StageTimes::*stage) { times.*stage += watch.lap(); });
    } else {
      runner.replay->run([&] { run_scripted(runner, {}); });
    }
  }
  times.cycle = options.stages ? times.draft + times.score + times.verify + times.commit : watch.lap();
  const double cycles = static_cast<double>(runner.script.size());
  for (double StageTimes::*part :
       {&StageTimes::draft, &StageTimes::score, &StageTimes::verify, &StageTimes::commit, &StageTimes::cycle})
    times.*part /= cycles;
  return times;
}

}  // namespace

std::vector<std::string> clock_names() {
  return {"wall", "processor"};
}

Clock clock_from(const std::string& name) {
  const std::vector<std::string> names = clock_names();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<Clock>(found - names.begin());
  throw Error(ExitCode::usage, "clock: got " + quote(name) + ", expected " + list_of(names));
}

double total(const StageTimes& times) {
  return times.cycle;
}

StageTimes median_stages(const CycleRounds& rounds) {
  const auto median = [&](double StageTimes::*stage) {
    std::vector<double> values;
    for (const StageTimes& times : rounds) values.push_back(times.*stage);
    return summarise(std::move(values)).p50;
  };
  return {median(&StageTimes::draft), median(&StageTimes::score), median(&StageTimes::verify),
          median(&StageTimes::commit), median(&StageTimes::cycle)};
}

std::vector<std::int64_t> accepted_around(double mean) {
  constexpr int kPeriod = 20;
  std::vector<std::int64_t> counts;
  for (int i = 0; i < kPeriod; ++i)
    counts.push_back(static_cast<std::int64_t>(std::floor((i + 1) * mean) - std::floor(i * mean)));
  return counts;
}

std::int64_t rows_to_middle(const Grid& grid) {
  const std::int64_t rows = grid.rows / 2;
  return rows * (grid.columns + (grid.row_end.empty() ? 0 : 1));
}

MeasuredCycles measure_cycles(const Models& models, const std::vector<Method>& methods,
                              const Prompts& prompts, const std::vector<DecodeRequest>& requests,
                              const Grid& grid, const CycleOptions& options,
                              const std::function<bool(int round)>& on_round) {
  const c10::InferenceMode inference;
  const c10::Device device = models.target->placement().device;
  Runners runners;
  for (const Method& method : methods) {
    if (!method.tree)
      throw Error(
          ExitCode::usage,
          "scripted acceptance needs a static tree; dynamic trees and row-parallel methods have none");
    Runner runner;
    runner.models = models;
    runner.method = &method;
    runner.state = go_to_middle(models, method, prompts, requests, grid);
    runner.middle = snapshot(runner.state);
    const bool replayable = runner.state.draft_method->replayable();
    runner.replay =
        std::make_unique<Replay>(device, options.graph && !options.stages && replayable, options.note);
    for (int cycle = 0; cycle < options.block; ++cycle) {
      const std::int64_t count = options.accepted[static_cast<std::size_t>(cycle) % options.accepted.size()];
      runner.script.push_back(scripted(*method.tree, count, runner.state.run.images(), device));
    }
    runner.accepted = runner.script.front().clone();
    runners.push_back(std::move(runner));
  }
  MeasuredCycles measured;
  measured.rounds.resize(methods.size());
  for (Runner& runner : runners) run_block(runner, options);
  const Stopwatch watch;
  for (int round = 0; round < options.rounds && (round == 0 || watch.elapsed() < options.most_ms); ++round) {
    for (std::size_t turn = 0; turn < runners.size(); ++turn) {
      const std::size_t index = (static_cast<std::size_t>(round) + turn) % runners.size();
      measured.rounds[index].push_back(run_block(runners[index], options));
    }
    if (on_round && !on_round(round)) throw Error(ExitCode::interrupted, "stopped");
  }
  for (const Runner& runner : runners) measured.kernels.push_back(runner.replay->kernels());
  return measured;
}

double streaming_rate(Clock clock) {
  constexpr std::int64_t kBytes = std::int64_t{512} << 20;
  const std::string buffer(kBytes, 'a');
  double best = 0;
  for (int pass = 0; pass < 5; ++pass) {
    Timer watch(clock, c10::kCPU);
    // Searching for a byte that does not occur reads memory and does little else.
    std::atomic<int> found{0};
    parallel_for(0, kBytes, 1 << 20, [&](std::int64_t begin, std::int64_t end) {
      if (std::memchr(buffer.data() + begin, 'b', static_cast<std::size_t>(end - begin)) != nullptr) ++found;
    });
    const double ms = watch.lap();
    if (found == 0) best = std::max(best, static_cast<double>(kBytes) / ms);
  }
  return best;
}

}  // namespace lamplighter
