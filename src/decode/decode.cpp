#include "decode/decode.h"

#include <c10/core/InferenceMode.h>

#include "base/stopwatch.h"
#include "lamplighter/error.h"

namespace lamplighter {
namespace {

at::Tensor finished_codes(const DecodeState& state) {
  if (state.bad.any().item<bool>()) {
    throw Error(
        ExitCode::bundle,
        "target: got logits that are NaN or infinite, expected finite numbers; the weights are damaged "
        "or --dtype is too narrow for them");
  }
  return state.codes.narrow(1, 0, state.total).contiguous().cpu();
}

}  // namespace

at::Tensor decode(const Models& models, const Method& method, const Prompts& prompts,
                  const std::vector<DecodeRequest>& requests, const Grid& grid, const OnCycle& on_cycle) {
  const c10::InferenceMode inference;
  DecodeState state = make_state(models, method, prompts, requests, grid);
  StageTimes times;
  Stopwatch watch;
  Draft tree = root_alone(state);
  Verified verified = prefill(models, method, prompts, state);
  while (true) {
    times.verify = watch.lap();
    const Accepted accepted = accept(models, method, state, tree, verified);
    times.accept = watch.lap();
    commit(state, tree, verified, accepted);
    times.commit = watch.lap();
    if (on_cycle && !on_cycle(state, tree, accepted, times)) throw Error(ExitCode::interrupted, "stopped");
    if (state.finished()) return finished_codes(state);
    watch.lap();
    tree = draft(models, method, state);
    times.draft = watch.lap();
    verified = verify(models, state, tree);
  }
}

}  // namespace lamplighter
