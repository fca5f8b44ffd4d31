#pragma once

#include <string>
#include <utility>

#include "tests/golden/programs/acceptance/posterior.h"

// Replays cycles by the definitions of the papers.
namespace lamplighter::reference {

inline Reason reason_coded(std::int64_t code) {
  return static_cast<Reason>(code);
}

inline Reason reason_named(const std::string& name) {
  const std::vector<std::string> names{"leaf", "rejected", "bad_target", "bad_draft", "skipped"};
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) throw Error(ExitCode::input, "unknown reason " + name);
  return static_cast<Reason>(found - names.begin());
}

class PaperReplay {
 public:
  PaperReplay(const Recorded& recorded, const Verifier& verifier, Report& report)
      : recorded_(recorded), verifier_(verifier), report_(report) {}

  void run() {
    const Json& cases = recorded_.info().at("cases");
    for (std::size_t i = 0; i < cases.size(); ++i) {
      id_ = cases[i].at("id");
      report_.scenario(id_);
      options_ = {};
      if (cases[i].contains("input_kind")) {
        replay_edge(cases[i]);
      } else if (recorded_.has(id_ + ".neighbor_rows")) {
        replay_big(cases[i]);
      } else if (recorded_.info().contains("combinations")) {
        replay_set(cases[i], i);
      } else {
        replay_greedy(cases[i], i);
      }
    }
  }

 private:
  std::string own(const char* name) const { return id_ + "." + name; }
  // Returns the scenario's tensor, or the shared one.
  std::string own_or_shared(const char* name) const { return recorded_.has(own(name)) ? own(name) : name; }

  void read_tree(const std::vector<Distribution>& target, const std::vector<Distribution>& draft) {
    tree_.tokens = recorded_.integers(own_or_shared("token"));
    tree_.parents = recorded_.integers(own_or_shared("parent"));
    tree_.target = target;
    tree_.draft = draft;
    tree_.draft_rows.assign(tree_.parents.size(), -1);
    if (!draft.empty()) tree_.draft_rows = recorded_.integers(own_or_shared("draft_row"));
    tree_.uniforms.assign(tree_.parents.size(), 0);
    if (recorded_.has(own("uniform_by_node"))) tree_.uniforms = recorded_.doubles(own("uniform_by_node"));
  }

  // The combination is a rule alone, or with a residual: "lambda_optimal".
  void set_rule(const Json& scenario, const std::string& combination) {
    const std::size_t split = combination.find('_');
    const std::string rule = combination.substr(0, split);
    options_.rule = rule_of(rule);
    options_.residual =
        split == std::string::npos ? Residual::paper : residual_from(combination.substr(split + 1));
    options_.k = scenario.at("k");
    options_.bounds = {rule == "strict" ? 0.0 : scenario.at(rule).get<double>()};
  }

  static Filter filter_of(const Json& scenario) {
    return {scenario.at("temperature"), scenario.value("top_p", 1.0), scenario.at("top_k")};
  }

  void replay_set(const Json& scenario, std::size_t row) {
    const Filter filter = filter_of(scenario);
    read_tree(filtered(recorded_.rows(own("target_logits")), filter),
              filtered(recorded_.rows(own("draft_logits")), filter));
    table_ = table_of(recorded_, own_or_shared("neighbors"));
    options_.first_image_id = recorded_.info().at("image_offset");
    options_.proposal = proposal_of(recorded_.info().at("proposal"));
    for (const std::string combination : recorded_.info().at("combinations")) {
      set_rule(scenario, combination);
      const auto name = [&](const char* what) { return combination + "." + what; };
      tree_.uniforms[0] = recorded_.doubles(name("u_final"), row)[0];
      Expected expected;
      expected.path = unpadded(recorded_.integers(name("path"), row));
      expected.final = recorded_.doubles(name("final_dist"), row);
      expected.status = recorded_.integers(name("status"), row)[0];
      expected.token = recorded_.integers(name("final_token"), row)[0];
      const Verdict verdict = verifier_(tree_, options_, &table_);
      if (verifier_.is_host) {
        const auto length = static_cast<std::size_t>(recorded_.integers(name("trace_len"), row)[0]);
        Doubles trace = recorded_.doubles(name("trace"), row);
        trace.resize(length * 5);
        compare_walk(combination, verdict, trace, reason_coded(recorded_.integers(name("reason"), row)[0]),
                     recorded_.integers(name("fallback"), row)[0]);
      }
      compare(report_, combination, verifier_, verdict, expected, tree_.uniforms[0]);
    }
  }

  void replay_edge(const Json& scenario) {
    std::vector<Distribution> target = recorded_.rows(own("target")), draft;
    if (recorded_.has(own("draft"))) draft = recorded_.rows(own("draft"));
    if (scenario.at("input_kind") == "logits") {
      target = filtered(std::move(target), {});
      draft = filtered(std::move(draft), {});
    }
    read_tree(target, draft);
    const bool has_table = recorded_.has(own("neighbors"));
    if (has_table) table_ = table_of(recorded_, own("neighbors"));
    options_.rule = rule_of(scenario.at("rule"));
    options_.residual = residual_from(scenario.at("residual"));
    options_.proposal = proposal_of(scenario.at("proposal"));
    options_.k = scenario.at("k");
    options_.bounds = {scenario.at("bound")};
    options_.first_image_id = scenario.at("image_offset");
    tree_.uniforms[0] = recorded_.has(own("u_final")) ? recorded_.doubles(own("u_final"))[0] : 0;
    Expected expected;
    expected.path = unpadded(recorded_.integers(own("path")));
    expected.final = recorded_.doubles(own("final_dist"));
    expected.status = recorded_.integers(own("status"))[0];
    expected.token = scenario.at("final_token");
    const Verdict verdict = verifier_(tree_, options_, has_table ? &table_ : nullptr);
    if (verifier_.is_host) {
      Doubles trace;
      if (recorded_.has(own("trace"))) trace = recorded_.doubles(own("trace"));
      trace.resize(static_cast<std::size_t>(recorded_.integers(own("trace_len"))[0]) * 5);
      compare_walk(scenario.at("rule"), verdict, trace, reason_named(scenario.at("reason")),
                   recorded_.integers(own("fallback"))[0]);
    } else if (scenario.value("either_outcome_allowed", false) &&
               static_cast<std::int64_t>(verdict.path.size()) == 2 && expected.path.empty()) {
      return;  // single precision may accept the first child
    }
    compare(report_, scenario.at("rule"), {verifier_.function, verifier_.is_host, 1e-6}, verdict, expected,
            tree_.uniforms[0]);
  }

  void replay_greedy(const Json& scenario, std::size_t row) {
    read_tree(filtered(recorded_.rows(own("target_logits")), {0, 1, 0}), {});
    table_ = table_of(recorded_, own_or_shared("neighbors"));
    options_.greedy = true;
    options_.first_image_id = recorded_.info().at("image_offset");
    for (const std::string rule : {"strict", "delta", "lambda"}) {
      set_rule(scenario, rule);
      Expected expected;
      expected.path = unpadded(recorded_.integers(rule + ".path", row));
      const std::size_t stop = expected.path.empty() ? 0 : static_cast<std::size_t>(expected.path.back());
      expected.final = tree_.target[stop];
      expected.token = recorded_.integers(rule + ".final_token", row)[0];
      compare(report_, rule, verifier_, verifier_(tree_, options_, &table_), expected, 0);
    }
  }

  void replay_big(const Json& scenario) {
    const Filter filter = filter_of(scenario);
    read_tree(filtered(recorded_.rows(own("target_logits")), filter),
              filtered(recorded_.rows(own("draft_logits")), filter));
    const Integers kept = scenario.at("kept_per_row").get<Integers>();
    for (std::size_t row = 0; row < kept.size(); ++row) {
      const Distribution& target = tree_.target[row];
      report_.equal("kept tokens of row " + std::to_string(row),
                    std::int64_t{std::count_if(target.begin(), target.end(), [](double p) { return p > 0; })},
                    kept[row]);
    }
    // Only rows of tokens in the tree are recorded.
    const Integers tokens = recorded_.integers(own("neighbor_token"));
    const std::vector<Doubles> rows = recorded_.rows(own("neighbor_rows"));
    table_.codes = recorded_.info().at("image_vocab");
    table_.width = recorded_.shape(own("neighbor_rows")).at(1);
    table_.ids.assign(static_cast<std::size_t>(table_.codes * table_.width), 0);
    options_.first_image_id = recorded_.info().at("image_offset");
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const std::int64_t code = tokens[i] - options_.first_image_id;
      for (std::size_t j = 0; j < rows[i].size(); ++j) {
        table_.ids[static_cast<std::size_t>(code * table_.width) + j] =
            static_cast<std::uint16_t>(rows[i][j]);
      }
    }
    options_.proposal = proposal_of(recorded_.info().at("proposal"));
    for (const std::string combination : recorded_.info().at("combinations")) {
      set_rule(scenario, combination);
      compare_big(scenario.at(combination), id_ + "." + combination);
    }
  }

  void compare_big(const Json& run, const std::string& name) {
    const Doubles uniforms = recorded_.doubles("u_final");
    const Integers sampled = recorded_.integers(name + ".final_tokens");
    Verdict verdict;
    for (std::size_t i = 0; i < uniforms.size(); ++i) {
      tree_.uniforms[0] = uniforms[i];
      verdict = verifier_(tree_, options_, &table_);
      const std::string what = name + ": token for uniform " + std::to_string(i);
      compare_token(report_, what, verdict.final, uniforms[i], verdict.token, sampled[i], 1e-6);
    }
    report_.equal(name + ": path", Integers(verdict.path.begin() + 1, verdict.path.end()),
                  unpadded(recorded_.integers(name + ".path")));
    const Doubles sums = recorded_.doubles(name + ".block_sums");
    const std::size_t width = verdict.final.size() / sums.size();
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const auto begin = verdict.final.begin() + static_cast<std::ptrdiff_t>(i * width);
      report_.close(name + ": sum of block " + std::to_string(i),
                    std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(width), 0.0), sums[i], 2e-6);
    }
    const Integers ids = recorded_.integers(name + ".top_ids");
    const Doubles values = recorded_.doubles(name + ".top_values");
    for (std::size_t i = 0; i < ids.size(); ++i) {
      report_.close(name + ": probability of " + std::to_string(ids[i]),
                    verdict.final[static_cast<std::size_t>(ids[i])], values[i], 2e-6);
    }
    if (!verifier_.is_host) return;
    report_.equal(name + ": kept tokens",
                  std::int64_t{std::count_if(verdict.final.begin(), verdict.final.end(),
                                             [](double p) { return p > 0; })},
                  run.at("nonzero").get<std::int64_t>());
    compare_walk(name, verdict, recorded_.doubles(name + ".trace"), reason_named(run.at("reason")), 0);
  }

  // trace: node, numerator, denominator, neighbours, accepted.
  void compare_walk(const std::string& name, const Verdict& verdict, const Doubles& trace, Reason reason,
                    std::int64_t fallback) {
    report_.equal(name + ": number of tests", verdict.tests.size(), trace.size() / 5);
    for (std::size_t i = 0; i < std::min(verdict.tests.size(), trace.size() / 5); ++i) {
      const std::string what = name + ": test " + std::to_string(i);
      const Test& test = verdict.tests[i];
      const double* expected = trace.data() + i * 5;
      report_.equal(what + ": node", static_cast<double>(test.node), expected[0]);
      report_.close(what + ": numerator", test.numerator, expected[1], 1e-6);
      report_.close(what + ": denominator", test.denominator, expected[2], 1e-6);
      report_.equal(what + ": neighbours", static_cast<double>(test.neighbours), expected[3]);
      report_.equal(what + ": accepted", static_cast<double>(test.accepted), expected[4]);
    }
    report_.equal(name + ": reason", static_cast<int>(verdict.reason), static_cast<int>(reason));
    report_.equal(name + ": fallback", std::int64_t{verdict.fallback}, fallback);
  }

  const Recorded& recorded_;
  const Verifier& verifier_;
  Report& report_;
  std::string id_;
  AcceptanceOptions options_;
  ScoredTree tree_;
  NeighbourTable table_;
};

}  // namespace lamplighter::reference
