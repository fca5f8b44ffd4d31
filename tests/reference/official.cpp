#include <algorithm>
#include <cmath>

#include "tests/reference/walk.h"

// LANTERN's official programs (https://github.com/jadohu/LANTERN), where they differ from the papers:
// inclusive comparisons, uniforms in the order of the tests, k + 1 neighbours zeroed after a relaxed
// rejection.
namespace lamplighter::reference {
namespace {

bool contains(const std::vector<std::int64_t>& values, std::int64_t value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

class OfficialWalk {
 public:
  OfficialWalk(const Walk& walk, Verdict& verdict)
      : walk_(walk),
        verdict_(verdict),
        lumina_(walk.options.residual == Residual::official_lumina_static ||
                walk.options.residual == Residual::official_lumina_dynamic),
        static_(walk.options.residual == Residual::official_static ||
                walk.options.residual == Residual::official_lumina_static) {}

  void run() {
    while (step()) {
    }
  }

 private:
  // Goes to an accepted child; false when the walk ends.
  bool step();
  double denominator(std::int64_t node, std::int64_t child) const;
  Test verify(std::int64_t child, const Distribution& g);
  void reject(std::int64_t node, std::int64_t child, bool relaxed, Distribution& g) const;
  bool is_code(std::int64_t token) const {
    return walk_.table == nullptr || (token >= walk_.options.first_image_id &&
                                      token < walk_.options.first_image_id + walk_.table->codes);
  }

  const Walk& walk_;
  Verdict& verdict_;
  const bool lumina_, static_;
  std::int64_t sampled_ = 0;  // uniforms used up
};

// D(x) / (1 - earlier siblings), as the draft step stores it.
double OfficialWalk::denominator(std::int64_t node, std::int64_t child) const {
  if (!static_) return 1;
  const Distribution& draft = walk_.draft(node);
  double left = 1;
  for (const std::int64_t sibling : walk_.children[at(node)]) {
    const std::int64_t token = walk_.token(sibling);
    if (walk_.is_padding(token)) continue;
    if (sibling == child) {
      const double value = draft[at(token)] / left;
      return std::isfinite(value) ? std::clamp(value, 0.0, 1.0) : 0.0;
    }
    left -= draft[at(token)];
  }
  return 0;
}

Test OfficialWalk::verify(std::int64_t child, const Distribution& g) {
  const std::int64_t token = walk_.token(child);
  Test test;
  test.node = child;
  test.uniform = walk_.uniform(++sampled_);
  test.denominator = denominator(walk_.tree.parents[at(child)], child);
  test.skipped = test.denominator <= 0;
  test.numerator = g[at(token)];
  if (lumina_ && !is_code(token)) {
    test.numerator = contains(walk_.options.syntax_ids, token) ? 1 : 0;
  } else {
    const double limit = borrowing_limit(walk_, g[at(token)], walk_.depth[at(child)]);
    const bool strict = walk_.options.rule == Rule::lantern_plus
                            ? borrowing_limit(walk_, 1, walk_.depth[at(child)]) <= 0
                            : limit <= 0;
    double borrowed = 0;
    for (const std::int64_t id : neighbours_of(walk_, token, strict ? 0 : walk_.options.k)) {
      if (!(borrowed + g[at(id)] <= limit)) break;
      borrowed += g[at(id)];
      ++test.neighbours;
    }
    test.numerator += borrowed;
  }
  test.accepted = !test.skipped && test.uniform <= test.numerator / test.denominator;
  return test;
}

void OfficialWalk::reject(std::int64_t node, std::int64_t child, bool relaxed, Distribution& g) const {
  const std::int64_t token = walk_.token(child);
  const std::vector<std::int64_t> near =
      relaxed ? neighbours_of(walk_, token, walk_.options.k + 1) : std::vector<std::int64_t>{};
  if (static_) {
    Distribution draft = walk_.draft(node);
    bool first = true;
    for (const std::int64_t sibling : walk_.children[at(node)]) {
      if (sibling == child) break;
      if (walk_.is_padding(walk_.token(sibling))) continue;
      draft[at(walk_.token(sibling))] = 0;
      first = false;
    }
    if (!first) normalise(draft, 0);
    for (const std::int64_t id : near) (lumina_ ? g : draft)[at(id)] = 0;
    g = excess(g, draft);
  } else {
    g[at(token)] = 0;
    for (const std::int64_t id : near) g[at(id)] = 0;
  }
  if (!normalise(g, 0)) g.assign(g.size(), 1.0 / static_cast<double>(g.size()));
}

bool OfficialWalk::step() {
  const std::int64_t node = verdict_.path.back();
  Distribution g = walk_.target(node);
  if (walk_.children[at(node)].empty() || is_bad(g)) {
    finish(walk_, verdict_, std::move(g), Reason::leaf);
    return false;
  }
  if (static_ && is_bad(walk_.draft(node))) {
    verdict_.status |= kBadDraft;
    finish(walk_, verdict_, std::move(g), Reason::bad_draft);
    return false;
  }
  std::vector<std::int64_t> seen;
  bool rejected = false;
  for (const std::int64_t child : walk_.children[at(node)]) {
    const std::int64_t token = walk_.token(child);
    if (walk_.is_padding(token) || contains(seen, token)) continue;
    seen.push_back(token);
    verdict_.tests.push_back(verify(child, g));
    const Test& test = verdict_.tests.back();
    if (test.skipped) continue;
    if (test.accepted) {
      verdict_.path.push_back(child);
      return true;
    }
    rejected = true;
    reject(node, child, test.neighbours > 0, g);
  }
  finish(walk_, verdict_, std::move(g), rejected ? Reason::rejected : Reason::skipped);
  return false;
}

}  // namespace

void verify_official(const Walk& walk, Verdict& verdict) {
  OfficialWalk(walk, verdict).run();
}

}  // namespace lamplighter::reference
