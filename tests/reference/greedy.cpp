#include <cmath>

#include "tests/reference/walk.h"

// Temperature 0: a token is right when it is the most probable one after its neighbours have lent it theirs.
namespace lamplighter::reference {
namespace {

// The official programs compare inclusively and sum the two halves of the total variation on their own.
Numerator official_numerator(const Walk& walk, const Distribution& g, std::int64_t token,
                             std::int64_t depth) {
  Numerator numerator;
  const double own = g[at(token)];
  const double limit = borrowing_limit(walk, own, depth);
  const bool strict =
      walk.options.rule == Rule::lantern_plus ? borrowing_limit(walk, 1, depth) <= 0 : limit <= 0;
  double borrowed = 0, half = 0;
  for (const std::int64_t id : neighbours_of(walk, token, strict ? 0 : walk.options.k)) {
    const double next = borrowed + g[at(id)];
    half += 0.5 * g[at(id)];
    if (!(0.5 * std::abs(own - (own + next)) + half <= limit)) break;
    borrowed = next;
    numerator.taken.push_back(id);
  }
  numerator.value = own + borrowed;
  return numerator;
}

bool is_right(const Walk& walk, std::int64_t node) {
  const std::int64_t parent = walk.tree.parents[at(node)];
  const Distribution& target = walk.target(parent);
  const std::int64_t token = walk.token(node);
  if (walk.is_padding(token) || is_bad(target)) return false;
  if (!traits_of(walk.options.rule).borrows()) return most_probable(target) == token;
  const bool official = is_official(walk.options.residual);
  const Numerator numerator = official ? official_numerator(walk, target, token, walk.depth[at(node)])
                                       : numerator_of(walk, target, token, walk.depth[at(node)]);
  Distribution moved = target;
  if (!official) {
    for (const std::int64_t id : numerator.taken) moved[at(id)] = 0;
  }
  moved[at(token)] = numerator.value;
  return most_probable(moved) == token;
}

}  // namespace

void verify_greedy(const Walk& walk, Verdict& verdict) {
  // The longest chain of right nodes; among equals the first in depth-first order.
  std::vector<std::int64_t> best{0};
  std::vector<std::vector<std::int64_t>> pending{{0}};
  while (!pending.empty()) {
    const std::vector<std::int64_t> path = pending.back();
    pending.pop_back();
    if (path.size() > best.size()) best = path;
    const std::vector<std::int64_t>& children = walk.children[at(path.back())];
    for (auto child = children.rbegin(); child != children.rend(); ++child) {
      if (!is_right(walk, *child)) continue;
      pending.push_back(path);
      pending.back().push_back(*child);
    }
  }
  verdict.path = best;
  finish(walk, verdict, walk.target(best.back()),
         walk.children[at(best.back())].empty() ? Reason::leaf : Reason::rejected);
}

}  // namespace lamplighter::reference
