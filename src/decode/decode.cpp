#include "decode/decode.h"

#include <c10/core/InferenceMode.h>

#include "lamplighter/error.h"

namespace lamplighter {

at::Tensor decode(const Target& target, const Prompts& prompts, const std::vector<DecodeRequest>& requests,
                  const Grid& grid, DecodeState& state, const OnCycle& on_cycle) {
  const c10::InferenceMode inference;
  state = make_state(target, prompts, requests, grid);
  at::Tensor hidden = last_rows(prefill(target, prompts, state), prompts);
  while (true) {
    commit(state, accept(target, state, hidden));
    if (on_cycle && !on_cycle(state)) throw Error(ExitCode::interrupted, "stopped");
    if (state.finished()) break;
    hidden = verify(target, state);
  }
  return state.codes.cpu();
}

}  // namespace lamplighter
