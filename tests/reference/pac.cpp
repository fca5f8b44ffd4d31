#include <utility>
#include <vector>

#include "tests/reference/walk.h"

// What the official program of SJD-PAC accepts: the longest chain of children that are right by themselves.
namespace lamplighter::reference {
namespace {

constexpr double kLeastMass = 1e-6;  // smaller ones are rounding

struct Tested {
  std::vector<std::int64_t> right;  // children, the last one first
  Distribution left;                // of the target, as if all had been rejected
};

Tested test_children(const Walk& walk, std::int64_t node, Verdict& verdict) {
  Tested tested{{}, walk.target(node)};
  const std::vector<std::int64_t>& children = walk.children[at(node)];
  if (children.empty() || is_bad(tested.left) || is_bad(walk.draft(node))) return tested;
  Distribution draft = walk.draft(node);
  std::vector<std::int64_t> tokens;
  for (const std::int64_t child : children) {
    const std::int64_t token = walk.token(child);
    Distribution sampled_from = draft;
    if (walk.is_padding(token) || !normalise(sampled_from, kLeastMass)) continue;
    Test test{child, walk.uniform(child), tested.left[at(token)], sampled_from[at(token)]};
    test.accepted = test.uniform * test.denominator < test.numerator;
    verdict.tests.push_back(test);
    if (test.accepted) tested.right.insert(tested.right.begin(), child);
    tokens.push_back(token);
    Distribution rest = excess(tested.left, sampled_from);
    if (!normalise(rest, kLeastMass)) {
      rest = tested.left;
      for (const std::int64_t other : tokens) rest[at(other)] = 0;
      if (!normalise(rest, kLeastMass)) rest = walk.target(node);
    }
    tested.left = std::move(rest);
    draft[at(token)] = 0;
  }
  return tested;
}

}  // namespace

void verify_pac(const Walk& walk, Verdict& verdict) {
  std::vector<std::vector<std::int64_t>> pending{{0}};
  while (!pending.empty()) {
    const std::vector<std::int64_t> chain = pending.back();
    pending.pop_back();
    if (chain.size() > verdict.path.size()) verdict.path = chain;
    for (const std::int64_t child : test_children(walk, chain.back(), verdict).right) {
      pending.push_back(chain);
      pending.back().push_back(child);
    }
  }
  const std::int64_t end = verdict.path.back();
  const Distribution& target = walk.target(end);
  const bool leaf = walk.children[at(end)].empty(), names_row = walk.tree.draft_rows[at(end)] >= 0;
  if (is_bad(target)) return finish(walk, verdict, target, Reason::leaf);
  if (leaf) return finish(walk, verdict, names_row ? walk.draft(end) : target, Reason::leaf);
  if (is_bad(walk.draft(end))) {
    verdict.status |= kBadDraft;
    return finish(walk, verdict, target, Reason::bad_draft);
  }
  std::vector<Test> tests = verdict.tests;
  finish(walk, verdict, test_children(walk, end, verdict).left, Reason::rejected);
  verdict.tests = std::move(tests);
}

}  // namespace lamplighter::reference
