#include <algorithm>

#include "draft/options/tables.h"

namespace lamplighter {

using namespace option_rows;  // NOLINT(google-build-using-namespace)

namespace {

constexpr const char* kContinuous = "Continuous tokens";

bool drafts(const Run& run) {
  return run.entry.is_continuous();
}
bool drafts_nothing(const Run& run) {
  return run.continuous && !run.entry.drafts();
}
bool is_official(const Run& run) {
  return drafts(run) && run.options.rule == "official";
}

bool reads_steps(const Run& run) {
  return drafts_nothing(run) || is_official(run);
}

// An image takes at most one pass for each token.
std::int64_t most_steps(const Run& run) {
  std::int64_t tokens = 1 << 20;
  for (const Grid& grid : run.manifest->grids) tokens = std::min(tokens, grid.tokens());
  return tokens;
}

Value usual_steps(const Run& run) {
  constexpr std::int64_t kSteps = 64;  // of the official code of MAR
  return is_official(run) ? most_steps(run) : std::min(most_steps(run), kSteps);
}

Narrow steps_of(const Run& run) {
  return {whole(1, most_steps(run), ", the tokens of an image")};
}

Value usual_prefill(const Run& run) {
  return is_official(run) ? 0.15F : 0.05F;
}

Value usual_cap(const Run& run) {
  return std::int64_t{is_official(run) ? 100 : 1000};
}

Narrow caps_of(const Run& run) {
  if (!is_official(run)) return {};
  return {whole(1, 1000, " for rule official, which makes this number of tries for each token of a block")};
}

}  // namespace

std::vector<std::string> continuous_rules() {
  return {"exact", "paper", "official"};
}

// Numbers of cspd come from the paper and the official code.
std::vector<MethodOption> continuous_options() {
  return {row("steps", "steps", "Steps", kContinuous, "N",
              "Target passes per image (ar; cspd with rule official)", &M::steps, reads_steps, range(1),
              {"64 (ar), the tokens of the image (cspd)", usual_steps}, steps_of, "rule"),
          row("prefill_ratio", "prefill", "Prefill ratio", kContinuous, "X",
              "Share of the tokens that the target generates before drafting begins (cspd)",
              &M::prefill_ratio, drafts, range(0, 1), {"0.05, 0.15 with rule official", usual_prefill}),
          row("gamma", "gamma", "Gamma", kContinuous, "N", "Tokens drafted in a cycle (cspd)", &M::gamma,
              drafts, range(1, 4096), fixed(std::int64_t{4})),
          row("cap", "cap", "Cap", kContinuous, "N",
              "Largest number of tries to sample the residual after a rejection (cspd)", &M::cap, drafts,
              range(1, 1e6), {"1000, 100 with rule official", usual_cap}, caps_of),
          row("last_noise", "last-noise", "Last noise", kContinuous, "NAME",
              "on or off: whether the last denoising step adds noise, as it does in cspd (ar)",
              &M::last_noise, drafts_nothing, choices({"on", "off"}), fixed("off"))};
}

}  // namespace lamplighter
