#include <algorithm>
#include <utility>

#include "tests/reference/walk.h"

// Recursive rejection: siblings are verified one after another, each against what the earlier ones left of
// the target.
namespace lamplighter::reference {
namespace {

// Smaller masses are rounding: in exact arithmetic a rejection leaves more than the rejected probability.
constexpr double kLeastMass = 1e-6;

// The children of one node.
class Siblings {
 public:
  Siblings(const Walk& walk, std::int64_t node)
      : walk_(walk), node_(node), depth_(walk.depth[at(node)] + 1), g_(walk.target(node)) {
    if (walk.options.proposal != Proposal::deterministic) left_ = walk.draft(node);
  }

  // The distribution a child's token was sampled from, given its earlier siblings; empty: skip the child.
  Distribution proposal_of(std::int64_t token);

  void reject(std::int64_t token, const Distribution& sampled_from, const Numerator& numerator,
              Verdict& verdict);

  // The child that is accepted, or 0.
  std::int64_t verify(Verdict& verdict);

  const Distribution& target_left() const { return g_; }
  bool rejected_any() const { return !rejected_.empty(); }

 private:
  bool was_rejected(std::int64_t token) const {
    for (const std::int64_t other : rejected_) {
      if (other == token) return true;
    }
    return false;
  }
  Distribution rest_after(std::int64_t token, const Distribution& sampled_from,
                          const Numerator& numerator) const;

  const Walk& walk_;
  std::int64_t node_, depth_;
  Distribution g_, left_;  // what is left of the target, and of the draft when its mass shrinks
  std::vector<std::int64_t> rejected_;
};

Distribution Siblings::proposal_of(std::int64_t token) {
  if (walk_.options.proposal == Proposal::deterministic) {
    return was_rejected(token) ? Distribution{} : indicator(walk_.vocabulary, token);
  }
  const double sum = mass(left_);
  if (sum <= kLeastMass || left_[at(token)] <= 0) {
    left_[at(token)] = 0;
    return {};
  }
  Distribution sampled_from = left_;
  for (double& value : sampled_from) value /= sum;
  return sampled_from;
}

Distribution Siblings::rest_after(std::int64_t token, const Distribution& sampled_from,
                                  const Numerator& numerator) const {
  if (walk_.options.rule == Rule::cool) {
    Distribution given(g_.size());
    const double weight = bound_at(walk_, depth_);
    for (std::size_t i = 0; i < given.size(); ++i) given[i] = std::min(sampled_from[i], weight * g_[i]);
    return excess(g_, given);
  }
  if (walk_.options.rule == Rule::lenient) {
    Distribution weighted = g_;
    for (double& value : weighted) value *= bound_at(walk_, depth_);
    return excess(weighted, sampled_from);
  }
  if (walk_.options.residual == Residual::optimal) return excess(g_, sampled_from);
  Distribution moved = g_;
  for (const std::int64_t id : numerator.taken) moved[at(id)] = 0;
  moved[at(token)] = numerator.value;
  return excess(moved, sampled_from);
}

void Siblings::reject(std::int64_t token, const Distribution& sampled_from, const Numerator& numerator,
                      Verdict& verdict) {
  rejected_.push_back(token);
  Distribution rest = rest_after(token, sampled_from, numerator);
  verdict.fallback = 0;
  if (!normalise(rest, kLeastMass)) {
    rest = g_;
    for (const std::int64_t id : rejected_) rest[at(id)] = 0;
    verdict.fallback = 1;
    if (!normalise(rest, kLeastMass)) {
      rest = walk_.target(node_);
      verdict.fallback = 2;
    }
  }
  g_ = std::move(rest);
  if (walk_.options.proposal == Proposal::sampled) left_[at(token)] = 0;
}

std::int64_t Siblings::verify(Verdict& verdict) {
  for (const std::int64_t child : walk_.children[at(node_)]) {
    const std::int64_t token = walk_.token(child);
    if (walk_.is_padding(token)) continue;
    const Distribution sampled_from = proposal_of(token);
    if (sampled_from.empty()) continue;
    const Numerator numerator = numerator_of(walk_, g_, token, depth_);
    Test test{child, walk_.uniform(child), numerator.value, sampled_from[at(token)]};
    if (walk_.options.rule == Rule::grouped) set_group(walk_, g_, sampled_from, token, test);
    test.neighbours = static_cast<std::int64_t>(numerator.taken.size());
    test.accepted = test.uniform * test.denominator < test.numerator;
    verdict.tests.push_back(test);
    if (test.accepted) return child;
    reject(token, sampled_from, numerator, verdict);
  }
  return 0;
}

}  // namespace

void verify_recursive(const Walk& walk, Verdict& verdict) {
  while (true) {
    const std::int64_t node = verdict.path.back();
    verdict.fallback = 0;
    const Distribution& target = walk.target(node);
    if (walk.children[at(node)].empty() || is_bad(target)) {
      return finish(walk, verdict, target, Reason::leaf);
    }
    if (walk.options.proposal != Proposal::deterministic && is_bad(walk.draft(node))) {
      verdict.status |= kBadDraft;
      return finish(walk, verdict, target, Reason::bad_draft);
    }
    Siblings siblings(walk, node);
    const std::int64_t child = siblings.verify(verdict);
    if (child == 0) {
      return finish(walk, verdict, siblings.target_left(),
                    siblings.rejected_any() ? Reason::rejected : Reason::skipped);
    }
    verdict.path.push_back(child);
  }
}

}  // namespace lamplighter::reference
