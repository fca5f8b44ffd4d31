#include "decode/method.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>

#include "acceptance/rules.h"
#include "base/files.h"
#include "bundle/codebook.h"
#include "lamplighter/error.h"
#include "lamplighter/pipeline.h"
#include "tree/tree.h"

namespace lamplighter {
namespace {

[[noreturn]] void refuse(const std::string& message) {
  throw Error(ExitCode::usage, message);
}

// What a method means unless it is overridden.
struct Defaults {
  const char* name;
  const char* rule;
  const char* children;
  bool dynamic;
};
constexpr Defaults kMethods[] = {{"ar", "", "", false},
                                 {"eagle", "exact", "sampled", false},
                                 {"eagle-2", "exact", "top", true},
                                 {"lantern", "lantern", "sampled", false},
                                 {"lantern++", "lantern++", "sampled", false}};

const Defaults& defaults_of(const std::string& method) {
  std::string known;
  for (const Defaults& defaults : kMethods) {
    if (method == defaults.name) return defaults;
    known += (known.empty() ? "" : ", ") + std::string(defaults.name);
  }
  refuse("--method: got '" + method + "', expected " + known);
}

void check_choice(const char* flag, const std::string& got, const std::vector<std::string>& allowed) {
  if (std::find(allowed.begin(), allowed.end(), got) != allowed.end()) return;
  std::string known;
  for (const std::string& name : allowed) known += (known.empty() ? "" : ", ") + name;
  refuse(std::string(flag) + ": got '" + got + "', expected " + known);
}

// Autoregression has none of the options below.
void check_autoregressive(const MethodOptions& method) {
  const MethodOptions none;
  const bool plain = method.rule.empty() && method.tree.empty() && method.children.empty() &&
                     method.residual.empty() && method.draft_guidance.empty() && method.drafter.empty() &&
                     method.neighbours.empty() && !method.k && !method.delta && method.lambda.empty() &&
                     !method.dynamic_depth && !method.dynamic_width && !method.dynamic_nodes;
  if (!plain) {
    refuse(
        "--method ar drafts nothing: trees, rules and their options need --method eagle, eagle-2, lantern or "
        "lantern++");
  }
}

void resolve_drafter(MethodOptions& method, const Manifest& manifest) {
  std::string known;
  for (const auto& [name, entry] : manifest.drafters) known += (known.empty() ? "" : ", ") + name;
  if (known.empty()) {
    throw Error(ExitCode::bundle, "--method " + method.method + ": bundle " + manifest.directory +
                                      " has no drafter; add one with python -m models.export drafter, or use "
                                      "--method ar");
  }
  if (method.drafter.empty()) method.drafter = manifest.first_drafter;
  if (manifest.drafters.count(method.drafter) == 0)
    refuse("--drafter: got '" + method.drafter + "', this bundle has " + known);
}

// delta and lambda are two parameters of two rules, never one number.
void resolve_bounds(MethodOptions& method, const Manifest& manifest) {
  if (method.delta && !method.lambda.empty())
    refuse("--delta and --lambda exclude each other: delta belongs to lantern, lambda to lantern++");
  const bool delta = method.rule == "lantern", lambda = method.rule == "lantern++";
  if (method.delta && !delta) refuse("--delta needs the rule lantern, this run has " + method.rule);
  if (!method.lambda.empty() && !lambda)
    refuse("--lambda needs the rule lantern++, this run has " + method.rule);
  if (!delta && !lambda) {
    if (method.k.value_or(0) != 0)
      refuse("--relax-k needs the rule lantern or lantern++, this run has " + method.rule);
    if (!method.residual.empty() && method.residual != "paper")
      refuse("--residual needs the rule lantern or lantern++, this run has " + method.rule);
    if (!method.neighbours.empty())
      refuse("--neighbours needs the rule lantern or lantern++, this run has " + method.rule);
  }
  if (delta && !method.delta) method.delta = 0.05F;
  if (lambda && method.lambda.empty()) method.lambda = {2.0F};
  if (method.delta && !(*method.delta >= 0 && *method.delta <= 1))
    refuse("--delta: got " + std::to_string(*method.delta) + ", expected a number from 0 to 1");
  for (const float factor : method.lambda) {
    if (!(std::isfinite(factor) && factor >= 1))
      refuse("--lambda: got " + std::to_string(factor) + ", expected finite numbers, 1 or more");
  }
  const std::int64_t codes = manifest.tokens.codebook_size;
  if (!method.k) method.k = delta ? std::max<std::int64_t>(1, codes / 32) : lambda ? 10 : 0;
  if (*method.k < 0 || *method.k >= codes) {
    refuse("--relax-k: got " + std::to_string(*method.k) + ", expected 0.." + std::to_string(codes - 1) +
           ": there are " + std::to_string(codes) + " codes");
  }
}

void resolve_tree(MethodOptions& method, const Defaults& defaults, const Manifest& manifest,
                  const std::string& device, int batch) {
  if (method.tree.empty() && defaults.dynamic) method.tree = "dynamic";
  const auto tuned = manifest.trees.find(device);
  if (method.tree.empty()) {
    method.tree = tuned != manifest.trees.end() ? join_path(manifest.directory, tuned->second)
                                                : default_tree(device, batch);
  }
  const bool dynamic = method.tree == "dynamic";
  if (!dynamic && (method.dynamic_depth || method.dynamic_width || method.dynamic_nodes))
    refuse("the depth, width and nodes of a dynamic tree need --tree dynamic, this run has " + method.tree);
  if (dynamic) {
    if (!method.dynamic_depth) method.dynamic_depth = 4;
    if (!method.dynamic_width) method.dynamic_width = 10;
    const std::int64_t width = *method.dynamic_width, passes = *method.dynamic_depth;
    if (passes < 1 || width < 1 || passes * width > kMaxTreeNodes) {
      refuse("--tree dynamic: got depth " + std::to_string(passes) + " and width " + std::to_string(width) +
             ", expected at least 1 each and a product of at most " + std::to_string(kMaxTreeNodes));
    }
    const std::int64_t pool = width + passes * width * width;
    if (!method.dynamic_nodes) method.dynamic_nodes = static_cast<int>(std::min<std::int64_t>(58, pool));
    const std::int64_t most = std::min(pool, kMaxTreeNodes - 1);
    if (*method.dynamic_nodes < 1 || *method.dynamic_nodes > most) {
      refuse("--tree dynamic: got " + std::to_string(*method.dynamic_nodes) + " nodes, expected 1.." +
             std::to_string(most));
    }
    return;
  }
  const Tree tree = load_tree(method.tree);
  if (tree.drafted() == 0) refuse("--tree " + method.tree + " drafts nothing; use --method ar for that");
  if (method.rule == "block" && tree.max_children() > 1)
    refuse("--rule block judges chains, --tree " + method.tree + " has siblings; use traversal or chain-N");
}

void check_children(const MethodOptions& method) {
  const bool top = method.children == "top", dynamic = method.tree == "dynamic";
  if (dynamic && !top) refuse("--tree dynamic expands the most probable children; use --children top");
  if (top && (method.rule == "traversal" || method.rule == "block"))
    refuse("--rule " + method.rule + " needs --children sampled");
  const bool official_top =
      method.residual == "official-dynamic" || method.residual == "official-lumina-dynamic";
  if (is_official(residual_from(method.residual)) && official_top != top)
    refuse("--residual " + method.residual + " needs --children " + (official_top ? "top" : "sampled"));
}

// int32 [codes, k] on the CPU: the named table, the bundle's, or one made from the codebook.
at::Tensor neighbours_of(const MethodOptions& method, const Manifest& manifest) {
  const std::int64_t codes = manifest.tokens.codebook_size, k = *method.k;
  if (k == 0) return at::empty({0, 0}, at::kInt);
  const NeighbourTable table = [&] {
    if (!method.neighbours.empty()) return read_neighbours(method.neighbours, codes, k, ExitCode::input);
    if (manifest.neighbours) {
      return read_neighbours(join_path(manifest.directory, *manifest.neighbours), codes, k, ExitCode::bundle);
    }
    const Codebook codebook = read_codebook(manifest);
    return nearest_neighbours(codebook.vectors, codebook.dimension, k, Metric::l2);
  }();
  const std::vector<std::int32_t> ids(table.ids.begin(), table.ids.end());
  return at::tensor(ids).view({codes, k});
}

}  // namespace

std::string default_tree(const std::string& device, std::int64_t batch) {
  constexpr std::int64_t kRows = 150;
  if (device != "cuda") return "chain-4";
  const std::int64_t nodes = kRows / (2 * std::max<std::int64_t>(1, batch));
  for (const char* preset : {"lantern-58", "lantern-26"}) {
    if (preset_tree(preset).size() <= nodes) return preset;
  }
  return "chain-" + std::to_string(std::clamp<std::int64_t>(nodes - 1, 1, 6));
}

MethodOptions resolve_method(const MethodOptions& options, const Manifest& manifest,
                             const std::string& device, int batch) {
  MethodOptions method = options;
  const Defaults& defaults = defaults_of(method.method);
  if (method.method == "ar") {
    check_autoregressive(method);
    return method;
  }
  if (method.rule.empty()) method.rule = defaults.rule;
  rule_from(method.rule);
  if (method.children.empty()) method.children = method.tree == "dynamic" ? "top" : defaults.children;
  check_choice("--children", method.children, {"sampled", "top"});
  if (method.draft_guidance.empty()) method.draft_guidance = "combined";
  check_choice("--draft-guidance", method.draft_guidance, {"combined", "conditional"});
  resolve_drafter(method, manifest);
  resolve_bounds(method, manifest);
  if (method.residual.empty()) method.residual = "paper";
  resolve_tree(method, defaults, manifest, device, batch);
  check_children(method);
  return method;
}

Method make_method(const MethodOptions& resolved, const Manifest& manifest, const c10::Device& device,
                   bool greedy) {
  Method method;
  if (resolved.method == "ar") return method;
  if (resolved.tree == "dynamic") {
    method.dynamic = {*resolved.dynamic_depth, *resolved.dynamic_width, *resolved.dynamic_nodes};
  } else {
    method.tree = load_tree(resolved.tree);
  }
  method.conditional = resolved.draft_guidance == "conditional";
  ops::JudgeOptions& judge = method.judge;
  judge.rule = rule_from(resolved.rule);
  judge.residual = residual_from(resolved.residual);
  judge.sampled = resolved.children == "sampled" && !greedy;
  if (greedy) {
    // Most probable tokens: all exact rules are one, and nothing is left of a target to draw from.
    if (judge.rule == Rule::traversal || judge.rule == Rule::block) judge.rule = Rule::exact;
    judge.residual = Residual::paper;
  }
  const std::vector<float> bounds = resolved.delta ? std::vector<float>{*resolved.delta} : resolved.lambda;
  if (bounds.empty()) return method;
  judge.bounds = at::tensor(bounds).to(device);
  judge.k = *resolved.k;
  judge.neighbours = neighbours_of(resolved, manifest).to(device);
  return method;
}

}  // namespace lamplighter
