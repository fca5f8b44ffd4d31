#pragma once

#include <map>
#include <string>

#include "tests/golden/programs/acceptance/posterior.h"
#include "tree/tree.h"

// Computes exact distributions of toy problems, and replays the rules of the other_verifiers groups.
namespace lamplighter::reference {

// Reads rows by context: table_<length>[base-V number of the context, first token most significant].
inline ToyProblem toy_problem(const Recorded& recorded, const std::string& id, std::int64_t vocabulary,
                              const Tree& tree) {
  const auto rows_of = [&](const std::string& name) {
    std::map<std::size_t, std::vector<Distribution>> rows;
    for (std::size_t length = 0; recorded.has(id + "." + name + "_" + std::to_string(length)); ++length) {
      rows[length] = recorded.rows(id + "." + name + "_" + std::to_string(length));
    }
    return [rows, vocabulary](const Tokens& context) {
      const auto found = rows.find(context.size());
      std::size_t row = 0;
      for (const std::int64_t token : context) {
        row = row * static_cast<std::size_t>(vocabulary) + static_cast<std::size_t>(token);
      }
      // Leaves have no draft row.
      return found == rows.end() ? Distribution(static_cast<std::size_t>(vocabulary)) : found->second.at(row);
    };
  };
  return {vocabulary, tree.parent, rows_of("target"), rows_of("draft")};
}

inline JointDistribution recorded_distribution(const Recorded& recorded, const std::string& key) {
  JointDistribution distribution;
  const Doubles probabilities = recorded.doubles(key + ".prob");
  for (std::size_t i = 0; i < probabilities.size(); ++i) {
    distribution[unpadded(recorded.integers(key + ".seq", i))] += probabilities[i];
  }
  return distribution;
}

// Checks that the verifier decides every branch of the cycle like the host.
inline void compare_branches(Report& report, const std::string& what, DistributionOfCycle& cycle,
                             const Verifier& verifier, const AcceptanceOptions& options,
                             const NeighbourTable* table) {
  cycle.each_branch([&](const ScoredTree& tree, const Verdict& host, double probability) {
    if (probability < 1e-4) return;
    const Verdict verdict = verifier(tree, options, table);
    report.equal(what + ": path", verdict.path, host.path);
    report.close(what + ": final distribution", verdict.final, host.final, verifier.tolerance);
  });
}

inline void compare_distribution(const Recorded& recorded, Report& report, const std::string& what,
                                 const std::string& key, const ToyProblem& problem,
                                 const AcceptanceOptions& options, const NeighbourTable* table,
                                 const Verifier& verifier) {
  DistributionOfCycle cycle(problem, options, table, reference::verify);
  if (!verifier.is_host) return compare_branches(report, what, cycle, verifier, options, table);
  const JointDistribution distribution = cycle.distribution(),
                          expected = recorded_distribution(recorded, key);
  report.close(what + ": largest difference of the distribution", largest_difference(distribution, expected),
               0, 1e-12);
  if (traits_of(options.rule).lossy()) return;
  std::size_t length = 0;
  for (const auto& [tokens, probability] : distribution) length = std::max(length, tokens.size());
  report.close(
      what + ": distance from the target",
      largest_difference(continued(distribution, problem, length), plain_distribution(problem, length)), 0,
      1e-12);
}

inline void replay_enumeration(const Recorded& recorded, const Verifier& verifier, Report& report) {
  for (const Json& toy : recorded.info().at("cases")) {
    const std::string id = toy.at("id");
    report.scenario(id);
    const Tree tree = make_tree(toy.at("paths").get<std::vector<TreePath>>(), id, ExitCode::input);
    report.equal("parents", tree.parent, recorded.integers(id + ".parent"));
    const ToyProblem problem = toy_problem(recorded, id, toy.at("V"), tree);
    const NeighbourTable table = table_of(recorded, id + ".neighbors");
    for (const Json& run : toy.at("runs")) {
      const std::string key = run.at("key");
      if (run.at("rule") == "negative_control") {
        const JointDistribution wrong =
            DistributionOfCycle(problem, {}, nullptr, verify_without_update).distribution();
        report.close(key, largest_difference(wrong, recorded_distribution(recorded, key)), 0, 1e-12);
        const JointDistribution right =
            DistributionOfCycle(problem, {}, nullptr, reference::verify).distribution();
        if (largest_difference(wrong, right) < 1e-3)
          report.fail(key + ": cannot be distinguished from the right distribution");
        continue;
      }
      const std::string rule = run.at("rule");
      AcceptanceOptions options;
      options.rule = rule_of(rule);
      options.residual = residual_from(run.at("residual"));
      options.proposal = proposal_of(run.at("proposal"));
      options.k = toy.at("k");
      options.bounds = {rule == "strict" ? 0.0 : toy.at(rule).get<double>()};
      compare_distribution(recorded, report, key, key, problem, options, &table, verifier);
    }
  }
}

// Maps recorded names to rules of this library; false if another project's rule has no counterpart.
inline bool other_options(const std::string& name, AcceptanceOptions& options) {
  options = {};
  if (name == "block") options.rule = Rule::block;
  if (name == "traversal") options.rule = Rule::traversal;
  if (name == "iid_rrs") options.proposal = Proposal::independent;
  return name == "block" || name == "traversal" || name == "iid_rrs" || name == "sps" ||
         name == "rrs_without_replacement";
}

inline void replay_other_enumeration(const Recorded& recorded, const Verifier& verifier, Report& report) {
  for (const Json& toy : recorded.info().at("cases")) {
    const std::string id = toy.at("id");
    report.scenario(id);
    const bool chain = toy.at("kind") == "chain";
    const Tree tree = chain ? preset_tree("chain-" + toy.at("n").dump())
                            : make_tree(toy.at("paths").get<std::vector<TreePath>>(), id, ExitCode::input);
    const ToyProblem problem = toy_problem(recorded, id, toy.at("V"), tree);
    for (const auto& [name, run] : toy.items()) {
      AcceptanceOptions options;
      const std::string key = id + "." + name;
      if (!run.is_object() || !other_options(name, options) || !recorded.has(key + ".prob")) continue;
      if (!verifier.is_host && options.proposal == Proposal::independent) continue;
      compare_distribution(recorded, report, key, key, problem, options, nullptr, verifier);
    }
  }
}

// Replays a cycle of other_verifiers/chain and tree.
inline void replay_other(const Recorded& recorded, const Verifier& verifier, Report& report,
                         const std::string& key, const std::string& name, ScoredTree tree,
                         std::int64_t accepted) {
  AcceptanceOptions options;
  other_options(name, options);
  if (!verifier.is_host && options.proposal == Proposal::independent) {
    return report.leave_out("the operator does not verify independent samples");
  }
  const Verdict verdict = verifier(tree, options, nullptr);
  report.equal(name + ": accepted", static_cast<std::int64_t>(verdict.path.size()) - 1, accepted);
  if (recorded.has(key + ".path")) {
    report.equal(name + ": path", Integers(verdict.path.begin() + 1, verdict.path.end()),
                 unpadded(recorded.integers(key + ".path")));
  }
  report.close(name + ": final distribution", verdict.final, recorded.doubles(key + ".final_dist"),
               verifier.is_host ? 1e-10 : 2e-5);
  if (!verifier.is_host) return;
  for (const Test& test : verdict.tests) {
    if (!recorded.has(key + ".h")) break;
    report.close(name + ": chance of token " + std::to_string(test.node), test.numerator,
                 recorded.doubles(key + ".h").at(static_cast<std::size_t>(test.node)), 1e-10);
  }
  if (!recorded.has(key + ".trace")) return;
  std::vector<Doubles> trace = recorded.rows(key + ".trace");
  // The record ends with the root, which needs no test.
  if (!trace.empty() && trace.back()[0] == 0) trace.pop_back();
  report.equal(name + ": number of tests", verdict.tests.size(), trace.size());
  for (std::size_t i = 0; i < std::min(trace.size(), verdict.tests.size()); ++i) {
    const std::string what = name + ": test " + std::to_string(i);
    report.equal(what + ": node", static_cast<double>(verdict.tests[i].node), trace[i][0]);
    report.close(what + ": weight", verdict.tests[i].numerator, trace[i][1], 1e-10);
    report.equal(what + ": accepted", static_cast<double>(verdict.tests[i].accepted), trace[i][2]);
  }
}

inline void replay_chains(const Recorded& recorded, const Verifier& verifier, Report& report) {
  for (const Json& chain : recorded.info().at("cases")) {
    const std::string id = chain.at("id");
    report.scenario(id);
    const Tree shape = preset_tree("chain-" + chain.at("n").dump());
    ScoredTree tree;
    tree.parents = shape.parent;
    tree.draft_rows = shape.draft_row;
    tree.target = filtered(recorded.rows(id + ".target_logits"), {});
    tree.draft = filtered(recorded.rows(id + ".draft_logits"), {});
    tree.tokens = recorded.integers(id + ".token");
    tree.uniforms = recorded.doubles(id + ".uniforms");
    tree.tokens.insert(tree.tokens.begin(), 0);
    tree.uniforms.insert(tree.uniforms.begin(), 0.0);
    replay_other(recorded, verifier, report, id + ".sps", "sps", tree, chain.at("sps_accept"));
    replay_other(recorded, verifier, report, id + ".block", "block", tree, chain.at("block_accept"));
    // Keep-or-resample and SJD accept the same prefix as sps.
    const Integers kept = recorded.integers(id + ".keep.kept");
    const auto prefix = std::find(kept.begin(), kept.end(), 0) - kept.begin();
    const Verdict verdict = verifier(tree, {}, nullptr);
    report.equal("keep: first resampled", static_cast<std::int64_t>(verdict.path.size()) - 1,
                 std::int64_t{prefix});
    report.equal("sjd: accepted", static_cast<std::int64_t>(verdict.path.size()) - 1,
                 chain.at("sjd_accept").get<std::int64_t>());
  }
}

inline void replay_trees_of_others(const Recorded& recorded, const Verifier& verifier, Report& report) {
  for (const Json& scenario : recorded.info().at("cases")) {
    const std::string id = scenario.at("id");
    report.scenario(id);
    ScoredTree tree;
    tree.parents = recorded.integers(id + ".parent");
    tree.draft_rows = recorded.integers(id + ".draft_row");
    tree.target = filtered(recorded.rows(id + ".target_logits"), {});
    tree.draft = filtered(recorded.rows(id + ".draft_logits"), {});
    tree.uniforms = recorded.doubles(id + ".uniform_by_node");
    tree.tokens = recorded.integers(id + ".traversal.token");
    replay_other(recorded, verifier, report, id + ".traversal", "traversal", tree,
                 scenario.at("traversal_accept"));
    tree.tokens = recorded.integers(id + ".iid_rrs.token");
    replay_other(recorded, verifier, report, id + ".iid_rrs", "iid_rrs", tree, scenario.at("iid_accept"));
  }
}

}  // namespace lamplighter::reference
