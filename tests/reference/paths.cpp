#include <algorithm>
#include <utility>

#include "lamplighter/error.h"
#include "tests/reference/walk.h"

// Rules that verify whole paths from the leaf up: block verification (Sun et al., "Block Verification
// Accelerates Speculative Decoding", 2024) for chains and traversal verification (Weng et al., 2025) for
// trees.
namespace lamplighter::reference {
namespace {

constexpr double kLeastMass = 1e-6;

Distribution scaled_excess(double weight, Distribution target, const Distribution& draft) {
  for (double& value : target) value *= weight;
  return excess(target, draft);
}

// Whether the children of a node can be verified; the reason why not is kept for the case that the walk ends
// there.
bool is_verifiable(const Walk& walk, std::int64_t node, bool& bad_draft) {
  bad_draft = false;
  if (walk.children[at(node)].empty() || is_bad(walk.target(node))) return false;
  if (walk.options.proposal == Proposal::deterministic) return true;
  bad_draft = is_bad(walk.draft(node));
  return !bad_draft;
}

void finish_at(const Walk& walk, Verdict& verdict, Distribution final, bool bad_draft, bool rejected) {
  if (bad_draft) verdict.status |= kBadDraft;
  finish(walk, verdict, std::move(final),
         bad_draft  ? Reason::bad_draft
         : rejected ? Reason::rejected
                    : Reason::leaf);
}

class Traversal {
 public:
  Traversal(const Walk& walk, Verdict& verdict)
      : walk_(walk), verdict_(verdict), states_(walk.children.size()) {}

  void run();

 private:
  struct State {
    std::vector<std::int64_t> alive;  // children not yet deleted, in order
    Distribution target, draft;       // P and Q of the definition
    double weight = 1;
    bool bad_draft = false, changed = false;
  };

  void open(std::int64_t node, double weight);
  // Deletes first children that were never sampled, then sets the weight of the first one left and goes on
  // there.
  std::int64_t descend(std::int64_t node);
  double child_weight(State& state, std::int64_t token) const;
  void remove(std::int64_t leaf);

  const Walk& walk_;
  Verdict& verdict_;
  std::vector<State> states_;
};

void Traversal::open(std::int64_t node, double weight) {
  State& state = states_[at(node)];
  state.weight = weight;
  state.target = walk_.target(node);
  if (!is_verifiable(walk_, node, state.bad_draft)) return;
  state.alive = walk_.children[at(node)];
  if (walk_.options.proposal != Proposal::deterministic) state.draft = walk_.draft(node);
}

// Weight of the first child, or -1 when its token cannot have been sampled.
double Traversal::child_weight(State& state, std::int64_t token) const {
  if (walk_.is_padding(token)) return -1;
  if (walk_.options.proposal == Proposal::deterministic) state.draft = indicator(walk_.vocabulary, token);
  if (!(state.draft[at(token)] > 0)) return -1;
  return std::min(1.0, state.weight * state.target[at(token)] / state.draft[at(token)]);
}

std::int64_t Traversal::descend(std::int64_t node) {
  while (true) {
    State& state = states_[at(node)];
    if (state.alive.empty()) return node;
    const std::int64_t child = state.alive.front();
    const double weight = child_weight(state, walk_.token(child));
    if (weight < 0) {
      state.alive.erase(state.alive.begin());
      continue;
    }
    open(child, weight);
    node = child;
  }
}

void Traversal::remove(std::int64_t leaf) {
  State& state = states_[at(walk_.tree.parents[at(leaf)])];
  const std::int64_t token = walk_.token(leaf);
  state.alive.erase(state.alive.begin());
  state.changed = true;
  Distribution rest = scaled_excess(state.weight, state.target, state.draft);
  const double left = mass(rest);
  if (normalise(rest, 0)) {
    state.weight = left / (left + 1 - state.weight);
    state.target = std::move(rest);
  } else {
    state.weight = 0;
  }
  if (walk_.options.proposal != Proposal::sampled) return;
  state.draft[at(token)] = 0;
  if (!normalise(state.draft, kLeastMass)) state.draft.assign(state.draft.size(), 0.0);
}

void Traversal::run() {
  open(0, 1);
  std::int64_t leaf = descend(0);
  while (leaf != 0) {
    Test test{leaf, walk_.uniform(leaf), states_[at(leaf)].weight, 1};
    test.accepted = test.uniform < test.numerator;
    verdict_.tests.push_back(test);
    if (test.accepted) break;
    remove(leaf);
    leaf = descend(walk_.tree.parents[at(leaf)]);
  }
  const State& state = states_[at(leaf)];
  for (std::int64_t node = leaf; node > 0; node = walk_.tree.parents[at(node)]) {
    verdict_.path.insert(verdict_.path.begin() + 1, node);
  }
  finish_at(walk_, verdict_, state.target, state.bad_draft, state.changed);
}

}  // namespace

void verify_traversal(const Walk& walk, Verdict& verdict) {
  Traversal(walk, verdict).run();
}

void verify_block(const Walk& walk, Verdict& verdict) {
  for (const std::vector<std::int64_t>& children : walk.children) {
    if (children.size() > 1) throw Error(ExitCode::usage, "verify: rule block takes chains only");
  }
  const auto draft_of = [&](std::int64_t node) {
    if (walk.options.proposal != Proposal::deterministic) return walk.draft(node);
    return indicator(walk.vocabulary, walk.token(walk.children[at(node)].front()));
  };
  // The chain ends where a row is bad or a token cannot have been sampled.
  std::vector<std::int64_t> chain{0};
  std::vector<double> weights{1};
  bool bad_draft = false;
  while (is_verifiable(walk, chain.back(), bad_draft)) {
    const std::int64_t node = chain.back(), next = walk.children[at(node)].front();
    const std::int64_t token = walk.token(next);
    if (walk.is_padding(token)) break;
    const double sampled = draft_of(node)[at(token)];
    if (!(sampled > 0)) break;
    weights.push_back(std::min(1.0, weights.back() * walk.target(node)[at(token)] / sampled));
    chain.push_back(next);
  }
  const auto rest_at = [&](std::size_t place) {
    return scaled_excess(weights[place], walk.target(chain[place]), draft_of(chain[place]));
  };
  const std::size_t last = chain.size() - 1;
  std::size_t place = last;
  for (; place > 0; --place) {
    double chance = weights[place];
    if (place < last) {
      const double left = mass(rest_at(place));
      chance = left > 0 ? left / (left + 1 - weights[place]) : 0;
    }
    Test test{chain[place], walk.uniform(chain[place]), chance, 1};
    test.accepted = test.uniform < test.numerator;
    verdict.tests.push_back(test);
    if (test.accepted) break;
  }
  verdict.path.assign(chain.begin(), chain.begin() + static_cast<std::ptrdiff_t>(place) + 1);
  const Distribution& target = walk.target(chain[place]);
  if (place == last) return finish_at(walk, verdict, target, bad_draft, false);
  Distribution rest = rest_at(place);
  if (!normalise(rest, 0)) rest = target;
  finish_at(walk, verdict, std::move(rest), false, true);
}

}  // namespace lamplighter::reference
