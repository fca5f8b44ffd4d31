#include "propose/options/options.h"

#include <algorithm>
#include <iterator>

#include "acceptance/rules.h"
#include "base/message.h"
#include "lamplighter/error.h"
#include "propose/options/option_values.h"
#include "propose/options/resolve.h"
#include "propose/registry.h"
#include "tree/tree.h"
#include "tree/window_fill.h"

namespace lamplighter {
namespace {

using M = MethodOptions;
constexpr const char* kMethod = "Method";
constexpr const char* kRelaxed = "Relaxed rules";
constexpr const char* kDynamic = "Dynamic trees";
constexpr const char* kContinuous = "Continuous tokens";
constexpr double kAny = std::numeric_limits<double>::infinity();
constexpr const char* kTreePaths = "tree_paths";  // of a tree that a file gave, beside its name
constexpr double kLeastLenience = 0.001;
constexpr double kNodes = static_cast<double>(kMaxTreeNodes);
constexpr MethodOption::Choices kChildren{"sampled", "top"}, kGuidance{"combined", "conditional"},
    kLengths{"full", "auto"}, kTails{"keep", "fresh"}, kZipar{"clean", "released"}, kSwitch{"on", "off"};

constexpr MethodOption kOptions[] = {
    {"rule", "rule", "Rule", kMethod, "NAME",
     "exact, traversal, block; relaxed: lantern, lantern++, cool, typical, grouped, lenient, official-pac "
     "(what SJD-PAC's program draws: sjd-pac); cspd: exact, paper, released",
     &M::rule},
    {"tree", "tree", "Tree", kMethod, "NAME|FILE",
     "chain-N, lantern-26, lantern-58, fan-K-S-N (windows), dynamic, or a file of tune-tree", &M::tree},
    {"children", "children", "Children", kMethod, "NAME",
     "sampled or top: how the drafter's tokens are chosen", &M::children, "", "children", 0, kAny, kChildren},
    {"relax_k", "k", "Relax-k", kRelaxed, "K", "Neighbours that may stand for a token (lantern, lantern++)",
     &M::k, "rule", "neighbours"},
    {"delta", "delta", "Delta", kRelaxed, "X",
     "Most probability that neighbours may lend (lantern); scale of the weights (cool)", &M::delta, "rule",
     "delta"},
    {"mu", "mu", "Mu", kRelaxed, "X", "Tokens at depth i count delta * exp(-nu * i - mu) times (cool)",
     &M::mu, "rule", "cool", -kAny},
    {"nu", "nu", "Nu", kRelaxed, "X", "How fast weights fall with the depth (cool)", &M::nu, "rule", "cool",
     -kAny},
    {"lenience", "lenience", "Lenience", kRelaxed, "L",
     "Drafts are accepted with min(1, p / (L q)); 1: the law of ar (lenient, the rule that it asks for)",
     &M::lenience, "rule", "lenient", kLeastLenience, 1},
    {"epsilon", "epsilon", "Epsilon", kRelaxed, "X",
     "A token passes above min(epsilon, alpha * exp(-entropy)) (typical)", &M::epsilon, "rule", "typical", 0,
     1},
    {"alpha", "alpha", "Alpha", kRelaxed, "X", "See epsilon (typical)", &M::alpha, "rule", "typical"},
    {"group_gap", "gap", "Group gap", kRelaxed, "X",
     "Most difference of probability inside a group of tokens (grouped)", &M::group_gap, "rule", "grouped", 0,
     1},
    {"group_distance", "distance", "Group distance", kRelaxed, "X",
     "Most squared distance of codes inside a group (grouped)", &M::group_distance, "rule", "grouped"},
    {"lambda", "lambda", "Lambda", kRelaxed, "X",
     "Most growth of a token's probability (lantern++), or one per depth: 3,2", &M::lambda, "rule",
     "lantern++", 1},
    {"residual", "residual", "Residual", kRelaxed, "NAME",
     "paper, optimal or official-...: what a relaxed rejection leaves", &M::residual, "rule", "neighbours"},
    {"drafter", "drafter", "Drafter", kMethod, "NAME", "One of the bundle's; default: the first", &M::drafter,
     "", "drafter"},
    {"draft_guidance", "draft-guidance", "Draft guidance", kMethod, "NAME",
     "combined or conditional: guidance of the drafter", &M::draft_guidance, "", "drafter", 0, kAny,
     kGuidance},
    {"draft_length", "length", "Draft length", kMethod, "NAME",
     "full, or auto: a chain ends where the drafter is no longer sure of it", &M::draft_length, "", "drafter",
     0, kAny, kLengths},
    {"draft_confidence", "confidence", "Draft confidence", kMethod, "X",
     "auto: goes on while the likeliest tokens' probabilities multiply to X or more", &M::draft_confidence,
     "", "drafter", 0, 1},
    {"draft_layers", "layers", "Draft layers", kMethod, "N",
     "First layers of the target that draft; default: half of them (self)", &M::draft_layers, "", "self", 1},
    {"draft_window", "window", "Draft window", kMethod, "N",
     "Newest rows of the picture that they see, beside the prompt; default: all (self)", &M::draft_window, "",
     "self", 1},
    {"init", "init", "Init", kMethod, "NAME",
     "uniform, random, repeat, sample or above: what new places of a window hold (sjd)", &M::init, "",
     "window", 0, kAny, kWindowFills},
    {"tail", "tail", "Tail", kMethod, "NAME",
     "keep or fresh: whether drafts stay in a window where they may (sjd, refine)", &M::tail, "", "tail", 0,
     kAny, kTails},
    {"front", "front", "Front", kMethod, "N",
     "Places of the window that the drafter fills (eagle+sjd, flash+sjd)", &M::front, "", "front", 1,
     kNodes - 1},
    {"ahead", "ahead", "Ahead", kMethod, "N",
     "Tokens that a row is ahead of the next; a whole row or more: one row after the other; default: half of "
     "a row (zipar, zipar+sjd, pjd)",
     &M::ahead, "", "ahead", 1, 4096},
    {"zipar", "zipar", "ZipAR", kMethod, "NAME",
     "clean, or released: what a row lacks is seen as zeros, as in the published program (zipar)", &M::zipar,
     "", "rows", 0, kAny, kZipar},
    {"neighbours", "neighbours", "Neighbours", kRelaxed, "FILE", "Table to use instead of the bundle's",
     &M::neighbours, "", "neighbours"},
    {"dynamic_depth", "depth", "Dynamic depth", kDynamic, "N", "Tree dynamic: expansions after the first",
     &M::dynamic_depth, "tree", "dynamic", 1, kNodes},
    {"dynamic_width", "width", "Dynamic width", kDynamic, "N", "Tree dynamic: nodes expanded per level",
     &M::dynamic_width, "tree", "dynamic", 1, kNodes},
    {"dynamic_nodes", "nodes", "Dynamic nodes", kDynamic, "N", "Tree dynamic: nodes that are verified",
     &M::dynamic_nodes, "tree", "dynamic", 1, kNodes - 1},
    {"steps", "steps", "Steps", kContinuous, "N", "Passes of a picture; default: 64 (ar)", &M::steps, "",
     "steps", 1},
    {"prefill_ratio", "prefill", "Prefill ratio", kContinuous, "X",
     "Share of the tokens that the target draws before any is drafted (cspd)", &M::prefill_ratio, "",
     "continuous", 0, 1},
    {"gamma", "gamma", "Gamma", kContinuous, "N", "Tokens drafted a cycle (cspd)", &M::gamma, "",
     "continuous", 1, 4096},
    {"cap", "cap", "Cap", kContinuous, "N", "Most proposals for a token that was rejected (cspd)", &M::cap,
     "", "continuous", 1, 1e6},
    {"last_noise", "last-noise", "Last noise", kContinuous, "NAME",
     "on or off: whether the last denoising step adds its noise, as that of cspd does (ar)", &M::last_noise,
     "", "passes", 0, kAny, kSwitch}};

const MethodOption& option_of(const std::string& key) {
  return *std::find_if(std::begin(kOptions), std::end(kOptions),
                       [&](const MethodOption& option) { return key == option.key; });
}

}  // namespace

const std::vector<MethodOption>& method_options() {
  static const std::vector<MethodOption> options(std::begin(kOptions), std::end(kOptions));
  return options;
}

const MethodOption& find_option(const std::string& word, const std::string& where) {
  std::string known;
  for (const MethodOption& option : method_options()) {
    if (word == option.word) return option;
    known += (known.empty() ? "" : ", ") + std::string(option.word);
  }
  throw Error(ExitCode::usage, where + ": got " + quote(word) + ", expected " + known);
}

bool has_use(const MethodOptions& method, const MethodOption& option) {
  const MethodEntry& entry = find_method(method.method);
  const std::string needs = option.needs;
  if (needs == "passes") return !entry.drafts();
  if (needs == "steps") return !entry.drafts() || (entry.is_continuous() && method.rule == "released");
  if (!entry.drafts()) return false;
  if (entry.is_continuous())
    return needs == "continuous" || option.key == std::string("drafter") || option.key == std::string("rule");
  if (needs == "continuous") return false;
  if (needs == "ahead") return entry.opens_rows();
  if (!entry.judges() || needs == "rows") return !entry.judges() && needs == "rows";
  if (needs.empty()) return true;
  if (needs == "drafter") return entry.needs_drafter();
  if (needs == "children") return entry.needs_drafter() || entry.drafts_itself();
  if (needs == "self") return entry.drafts_itself();
  if (needs == "window") return entry.keeps_window();
  if (needs == "tail") return entry.renews_drafts();
  if (needs == "front") return entry.keeps_window() && entry.needs_drafter();
  if (needs == kDynamicTree)
    return method.tree.empty() ? entry.tree == TreeKind::dynamic : method.tree == kDynamicTree;
  const Rule rule = rule_of(method);
  if (needs == "neighbours") return borrows(rule);
  if (needs == "delta") return rule == Rule::lantern || rule == Rule::cool;
  return needs == to_string(rule);
}

std::string flag_name(const MethodOption& option) {
  std::string name = option.key;
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

void write_options(const MethodOptions& method, Json& json) {
  for (const MethodOption& option : kOptions) {
    const bool idle = std::string(option.follows) == "rule" && !has_use(method, option);
    if (is_set(method, option) && !idle) json[option.key] = to_json(method, option);
  }
  const std::string name = tree_name(method.tree);
  if (name == method.tree) return;
  json["tree"] = name;
  json[kTreePaths] = tree_to_json(load_tree(method.tree)).at("paths");
}

MethodOptions read_options(JsonReader& reader) {
  MethodOptions method;
  for (const MethodOption& option : kOptions) {
    if (reader.has(option.key)) read_value(method, option, reader);
  }
  if (reader.has(kTreePaths))
    method.tree = Json{{"paths", reader.value(kTreePaths)}, {"about", method.tree}}.dump();
  return method;
}

MethodOptions merge_options(const MethodOptions& recorded, const MethodOptions& given) {
  MethodOptions merged = recorded;
  const auto changed = [&](const MethodOption& option) {
    return is_set(given, option) &&
           std::visit([&](auto field) { return given.*field != recorded.*field; }, option.field);
  };
  for (const MethodOption& option : kOptions) {
    const bool dropped = *option.follows != '\0' && changed(option_of(option.follows));
    const MethodOptions& source = is_set(given, option) || dropped ? given : recorded;
    std::visit([&](auto field) { merged.*field = source.*field; }, option.field);
  }
  return merged;
}

MethodOptions merge_methods(const MethodOptions& recorded, const MethodOptions& given, bool names_method) {
  return names_method && given.method != recorded.method ? given : merge_options(recorded, given);
}

bool is_same(const MethodOptions& one, const MethodOptions& other) {
  return one.method == other.method &&
         std::all_of(std::begin(kOptions), std::end(kOptions), [&](const MethodOption& option) {
           return std::visit([&](auto field) { return one.*field == other.*field; }, option.field);
         });
}

void check_options(const MethodOptions& method) {
  for (const MethodOption& option : kOptions) {
    if (is_set(method, option)) check_value(method, option);
  }
}

}  // namespace lamplighter
