// Replays a recorded case of trees, acceptance rules or neighbours: golden_acceptance CASE_DIR [--operators]
//   CASE_DIR holds case.json and io.safetensors. Replays on the host reference, with --operators through
//   verify_tree, expand_dynamic and rerank_dynamic.
// Prints the first deviation of every scenario that deviates. Exit code 0: none; 1: some; 3: unreadable.
#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>

#include <iostream>
#include <string>

#include "tests/golden/programs/acceptance/operators.h"
#include "tests/golden/programs/acceptance/paper.h"
#include "tests/golden/programs/acceptance/shapes.h"
#include "tests/golden/programs/acceptance/toys.h"

using namespace lamplighter;
using namespace lamplighter::reference;

namespace {

int replay(const Recorded& recorded, bool operators) {
  const std::string group = recorded.info().at("group");
  const Verifier verifier =
      operators ? Verifier{verify_by_operator, false, 5e-6} : Verifier{reference::verify};
  const Expander expander =
      operators ? Expander{expand_by_operator, rerank_by_operator} : Expander{expand_dynamic, rerank_dynamic};
  if (operators && (group == "trees" || group == "neighbors")) {
    throw Error(ExitCode::usage, "no operator has a part in group \"" + group + "\"");
  }
  Report report;
  if (group == "official_posterior") {
    OfficialReplay(recorded, verifier, report).run();
  } else if (group == "paper_posterior") {
    PaperReplay(recorded, verifier, report).run();
  } else if (group == "enumeration") {
    replay_enumeration(recorded, verifier, report);
  } else if (group == "other_verifiers/enumeration") {
    replay_other_enumeration(recorded, verifier, report);
  } else if (group == "other_verifiers/chain") {
    replay_chains(recorded, verifier, report);
  } else if (group == "other_verifiers/tree") {
    replay_trees_of_others(recorded, verifier, report);
  } else if (group == "trees") {
    replay_trees(recorded, report);
  } else if (group == "dynamic_trees") {
    DynamicReplay(recorded, expander, report).run();
  } else if (group == "neighbors") {
    replay_neighbours(recorded, report);
  } else {
    throw Error(ExitCode::input, recorded.folder() + ": unknown group \"" + group + "\"");
  }
  return report.summary();
}

}  // namespace

int main(int count, char** arguments) {
  const c10::InferenceMode inference;
  const bool operators = count == 3 && std::string(arguments[2]) == "--operators";
  if (count != 2 && !operators) {
    std::cerr << "usage: golden_acceptance CASE_DIR [--operators]\n";
    return 2;
  }
  try {
    return replay(Recorded(arguments[1]), operators);
  } catch (const Error& error) {
    std::cerr << "golden_acceptance: " << error.what() << "\n";
    return static_cast<int>(error.code());
  } catch (const c10::Error& error) {
    std::cerr << "golden_acceptance: " << error.what_without_backtrace() << "\n";
    return 1;
  } catch (const Json::exception& error) {
    std::cerr << "golden_acceptance: " << arguments[1] << "/case.json: " << error.what() << "\n";
    return static_cast<int>(ExitCode::input);
  }
}
