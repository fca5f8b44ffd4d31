#pragma once

#include <regex>
#include <string>

#include "tests/golden/programs/acceptance/filters.h"
#include "tests/golden/programs/acceptance/recorded.h"
#include "tests/reference/joint_distribution.h"

// Replays of single cycles.
namespace lamplighter::reference {

// Verifies cycles: the host reference, or the operator, which does not report its tests.
struct Verifier {
  VerifyFunction function;
  bool is_host = true;
  double tolerance = 1e-10;  // of distributions

  Verdict operator()(const ScoredTree& tree, const AcceptanceOptions& options,
                     const NeighbourTable* table) const {
    return function(tree, options, table);
  }
};

struct Expected {
  Integers path;  // accepted nodes without the root
  Distribution final;
  std::int64_t status = 0;
  std::int64_t token = -1;
};

inline void compare_token(Report& report, const std::string& what, const Distribution& final, double uniform,
                          std::int64_t got, std::int64_t expected, double tolerance) {
  if (got == expected) return;
  // Rounding may select a neighbouring token where the uniform is close to a cumulative probability.
  const auto until = [&](std::int64_t id) {
    return std::accumulate(final.begin(), final.begin() + std::max<std::int64_t>(id, 0), 0.0);
  };
  const bool possible = got >= 0 && got < static_cast<std::int64_t>(final.size()) &&
                        final[static_cast<std::size_t>(got)] > 0 && expected >= 0;
  const double threshold = uniform * std::accumulate(final.begin(), final.end(), 0.0);
  if (possible && until(got) - tolerance <= threshold && threshold <= until(got + 1) + tolerance) return;
  report.equal(what, got, expected);
}

inline void compare(Report& report, const std::string& rule, const Verifier& verifier, const Verdict& verdict,
                    const Expected& expected, double uniform) {
  report.equal(rule + ": path", Integers(verdict.path.begin() + 1, verdict.path.end()), expected.path);
  report.equal(rule + ": status", verdict.status, expected.status);
  report.close(rule + ": final distribution", verdict.final, expected.final, verifier.tolerance);
  compare_token(report, rule + ": final token", expected.final, uniform, verdict.token, expected.token,
                verifier.is_host ? 1e-12 : 1e-6);
}

// Recorded rules are strict, delta or lambda.
inline Rule rule_of(const std::string& name) {
  if (name == "strict") return Rule::exact;
  if (name == "delta") return Rule::lantern;
  if (name == "lambda") return Rule::lantern_plus;
  throw Error(ExitCode::input, "rule " + name + ": expected strict, delta or lambda");
}

inline Proposal proposal_of(const std::string& name) {
  if (name == "sampled") return Proposal::sampled;
  if (name == "deterministic") return Proposal::deterministic;
  throw Error(ExitCode::input, "proposal " + name + ": expected sampled or deterministic");
}

// Parses ids from a list, or from a text like "image_offset + image_vocab + [0, 1, 4, 6]".
inline Integers syntax_ids(const Json& value, std::int64_t after_codes) {
  if (value.is_null()) return {};
  if (value.is_array()) return value.get<Integers>();
  const std::string text = value.get<std::string>();
  std::smatch match;
  if (!std::regex_match(text, match, std::regex("image_offset \\+ image_vocab \\+ (\\[.*\\])"))) {
    throw Error(ExitCode::input, "syntax_token_ids: cannot read \"" + text + "\"");
  }
  Integers ids = Json::parse(match[1].str()).get<Integers>();
  for (std::int64_t& id : ids) id += after_codes;
  return ids;
}

// Replays official programs: uniforms in the order of their use, several rules per scenario.
class OfficialReplay {
 public:
  OfficialReplay(const Recorded& recorded, const Verifier& verifier, Report& report)
      : recorded_(recorded), verifier_(verifier), report_(report) {}

  void run() {
    const std::string variant = recorded_.info().at("variant");
    greedy_ = variant == "official-greedy";
    options_.greedy = greedy_;
    options_.residual = greedy_ ? Residual::official_static : residual_from(variant);
    options_.proposal =
        variant.find("dynamic") == std::string::npos ? Proposal::sampled : Proposal::deterministic;
    for (const Json& scenario : recorded_.info().at("cases")) {
      const std::string id = scenario.at("id");
      report_.scenario(id);
      read(scenario, id);
      for (const Json& run : scenario.at("runs")) replay(run, id + "." + run.at("rule").get<std::string>());
    }
  }

 private:
  void read(const Json& scenario, const std::string& id) {
    const Filter filter{scenario.at("temperature"), scenario.at("top_p"), scenario.at("top_k")};
    tree_.tokens = recorded_.integers(id + ".token");
    tree_.parents = recorded_.integers(id + ".parent");
    tree_.target = filtered(recorded_.rows(id + ".target_logits"), filter);
    tree_.draft_rows.assign(tree_.parents.size(), -1);
    tree_.draft.clear();
    if (recorded_.has(id + ".draft_logits")) {
      tree_.draft_rows = recorded_.integers(id + ".draft_row");
      tree_.draft = filtered(recorded_.rows(id + ".draft_logits"), filter);
    }
    table_ = table_of(recorded_, scenario.at("neighbors"));
    options_.first_image_id = scenario.at("image_offset");
    const std::int64_t after = options_.first_image_id + scenario.at("image_vocab").get<std::int64_t>();
    options_.syntax_ids = syntax_ids(recorded_.info().value("syntax_token_ids", Json()), after);
  }

  void replay(const Json& run, const std::string& name) {
    options_.rule = rule_of(run.at("rule"));
    options_.k = run.value("k", std::int64_t{0});
    options_.bounds = {run.value("parameter", 0.0)};
    tree_.uniforms.assign(tree_.parents.size(), 0);
    Expected expected;
    expected.path = unpadded(recorded_.integers(name + ".path"));
    if (greedy_) {
      expected.token = run.at("bonus_token");
      expected.final = tree_.target[run.at("stop_node").get<std::size_t>()];
    } else {
      const Doubles used = recorded_.doubles(name + ".uniforms");
      tree_.uniforms.resize(std::max(tree_.parents.size(), used.size() + 1));
      std::copy(used.begin(), used.end(), tree_.uniforms.begin() + 1);
      tree_.uniforms[0] = run.at("u_final");
      expected.token = run.at("final_token");
      expected.final = recorded_.doubles(name + ".sample_p");
    }
    const Verdict verdict = verifier_(tree_, options_, &table_);
    if (verifier_.is_host && !greedy_) compare_tests(verdict, name);
    compare(report_, name, verifier_, verdict, expected, tree_.uniforms[0]);
  }

  void compare_tests(const Verdict& verdict, const std::string& name) {
    const std::vector<Doubles> trace = recorded_.rows(name + ".trace");
    const Integers nodes = recorded_.integers(name + ".uniform_node");
    report_.equal(name + ": number of tests", verdict.tests.size(), trace.size());
    for (std::size_t i = 0; i < std::min(trace.size(), verdict.tests.size()); ++i) {
      const std::string what = name + ": test " + std::to_string(i);
      const Test& test = verdict.tests[i];
      report_.equal(what + ": node", test.node, nodes[i]);
      report_.equal(what + ": skipped", static_cast<double>(test.skipped), trace[i][5]);
      report_.close(what + ": denominator", test.denominator, trace[i][2], 1e-9);
      if (test.skipped) continue;
      report_.close(what + ": numerator", test.numerator, trace[i][1], 1e-9);
      report_.equal(what + ": last neighbour", static_cast<double>(test.neighbours - 1), trace[i][3]);
      report_.equal(what + ": accepted", static_cast<double>(test.accepted), trace[i][4]);
    }
  }

  const Recorded& recorded_;
  const Verifier& verifier_;
  Report& report_;
  bool greedy_ = false;
  AcceptanceOptions options_;
  ScoredTree tree_;
  NeighbourTable table_;
};

}  // namespace lamplighter::reference
