#include <algorithm>

#include "base/message.h"
#include "propose/options/options.h"
#include "propose/options/resolve.h"
#include "propose/options/resolve_parts.h"

namespace lamplighter {
namespace {

constexpr std::int64_t kSteps = 64;  // as MAR's program
constexpr std::int64_t kGamma = 4;
// As published: 5 % and 15 % of the tokens, and 100 rounds of proposals in the released program.
constexpr float kPrefill = 0.05F, kReleasedPrefill = 0.15F;
constexpr std::int64_t kCap = 1000, kReleasedCap = 100, kMostReleased = 1000;

// A picture takes at most one pass for each token.
void resolve_steps(MethodOptions& method, const Manifest& manifest, std::int64_t most) {
  std::int64_t tokens = manifest.grids.empty() ? most : manifest.grids.front().tokens();
  for (const Grid& grid : manifest.grids) tokens = std::min(tokens, grid.tokens());
  if (!method.steps) method.steps = std::min(tokens, most);
  if (*method.steps > tokens)
    refuse("steps: got " + std::to_string(*method.steps) + ", expected 1 to " + std::to_string(tokens) +
           ", the tokens of a picture");
}

}  // namespace

MethodOptions resolve_continuous(const MethodOptions& options, const Manifest& manifest) {
  MethodOptions method = options;
  const MethodEntry& entry = find_method(method.method);
  if (entry.drafts() && !entry.is_continuous())
    refuse("method " + method.method + " draws codes, the tokens of bundle " + manifest.name +
           " are continuous: ar and cspd draw them");
  for (const MethodOption& option : method_options()) {
    if (is_set(method, option) && !has_use(method, option))
      refuse(std::string(option.key) + ": method " + method.method +
             (method.rule.empty() || std::string(option.key) == "rule" ? "" : " with rule " + method.rule) +
             " of continuous tokens has no use for it");
  }
  check_options(method);
  if (!entry.drafts()) {
    resolve_steps(method, manifest, kSteps);
    if (method.last_noise.empty()) method.last_noise = "off";
    return method;
  }
  if (method.rule.empty()) method.rule = "exact";
  if (method.rule != "exact" && method.rule != "paper" && method.rule != "released")
    refuse("rule: got " + quote(method.rule) + ", expected exact, paper or released for method " +
           method.method);
  const bool released = method.rule == "released";
  if (released) resolve_steps(method, manifest, 1 << 20);
  if (!method.prefill_ratio) method.prefill_ratio = released ? kReleasedPrefill : kPrefill;
  if (!method.gamma) method.gamma = kGamma;
  if (!method.cap) method.cap = released ? kReleasedCap : kCap;
  if (released && *method.cap > kMostReleased)
    refuse("cap: got " + std::to_string(*method.cap) + ", expected 1 to " + std::to_string(kMostReleased) +
           " for the rule released, which makes as many proposals for all tokens of a block");
  resolve_drafter(method, entry.drafter, manifest);
  return method;
}

}  // namespace lamplighter
