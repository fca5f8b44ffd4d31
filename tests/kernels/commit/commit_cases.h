#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/commit/commit.h"
#include "kernels/ops.h"
#include "tests/kernels/common/operators.h"
#include "tests/kernels/common/random_counters.h"

// Random cycles for commit_tokens and new_tokens.
namespace lamplighter::test {

struct CommitCase {
  ops::CommittedTree tree;
  ops::Counters state;
  at::Tensor features;  // of the pass
  ops::NewTokens fresh;

  std::vector<at::Tensor*> changed() {
    return {&state.steps,    &state.codes,     &state.root,           &state.bad,    &state.lengths,
            &state.position, &state.root_ids,  &state.root_positions, &state.report, &fresh.count,
            &fresh.ids,      &fresh.positions, &fresh.features};
  }
  // What a cycle does to them.
  void commit() {
    ops::new_tokens(tree, features, state, fresh);
    ops::commit_tokens(tree, state);
  }
  // With tensors of its own, on a device.
  CommitCase copy(at::Device device = at::kCPU) const {
    CommitCase other = *this;
    for (at::Tensor* tensor : {&other.tree.tokens, &other.tree.depths, &other.tree.path, &other.tree.count,
                               &other.tree.token, &other.tree.status, &other.tree.kept_rows,
                               &other.tree.kept_count, &other.state.image, &other.features})
      *tensor = tensor->to(device);
    for (at::Tensor* tensor : other.changed()) *tensor = tensor->clone().to(device);
    if (tree.tokens.is_alias_of(state.root)) other.tree.tokens = other.state.root.unsqueeze(1);
    return other;
  }
};

// A chain inside of `nodes` nodes is accepted; some images are nearly complete, some complete. row_ends: a
// row end may follow the last accepted node. drafter: sequences of the draft model; 1: one per image, 2: as
// many as the target.
inline CommitCase commit_case(std::mt19937& rng, int64_t images, int64_t pairs, int64_t depth, bool row_ends,
                              int64_t drafter) {
  const int64_t nodes = depth == 0 ? 1 : pick(rng, depth + 1, 63), total = 20, sequences = images * pairs;
  CommitCase made;
  const auto number = [&](int64_t low, int64_t high) {
    return [&rng, low, high](int64_t) { return pick(rng, low, high); };
  };
  const at::Tensor none = at::full({images, depth + 1}, -1, at::kLong);
  ops::CommittedTree& tree = made.tree;
  tree.tokens = integers({images, nodes}, number(-1, 99));
  tree.depths = integers({pick(rng, 0, 1) == 0 ? 1 : images, nodes}, number(0, depth));
  tree.count = integers({images}, number(0, depth));
  tree.token = integers({images}, number(-1, 5));  // -1: now and then
  tree.status = integers({images}, number(0, 3));
  tree.path = none.clone();
  tree.kept_count = tree.count.clone();
  tree.kept_rows = row_ends ? at::cat({none, none.narrow(1, 0, 1)}, 1) : none.clone();
  for (int64_t i = 0; i < images; ++i) {
    std::vector<int64_t> rows(static_cast<size_t>(nodes - 1)), path{0};
    std::iota(rows.begin(), rows.end(), 1);
    std::sample(rows.begin(), rows.end(), std::back_inserter(path), tree.count[i].item<int64_t>(), rng);
    if (row_ends && pick(rng, 0, 1) == 1) {
      tree.kept_count[i].add_(1);
      tree.kept_rows[i][static_cast<int64_t>(path.size())].fill_(nodes + pick(rng, 0, 3));
    }
    for (size_t j = 0; j < path.size(); ++j) {
      tree.path[i][static_cast<int64_t>(j)].fill_(path[j]);
      tree.kept_rows[i][static_cast<int64_t>(j)].fill_(path[j]);
    }
  }
  ops::Counters& state = made.state = random_counters(rng, images, sequences, 100, total, depth);
  state.last_position = pick(rng, 15, 60);  // some rows lie past it
  state.first_image_id = pick(rng, 0, 9);
  state.row_end = 200;
  if (nodes == 1 && !row_ends) tree.tokens = state.root.unsqueeze(1);  // as where nothing is drafted
  state.report = integers({images, report::width(depth + pick(rng, 0, 2))}, number(-9, 9));
  const int64_t draft_sequences = drafter == 1 ? images : sequences, width = pick(rng, 1, 70);
  const at::ScalarType dtype = pick(rng, 0, 1) == 0 ? at::kFloat : at::kBFloat16;
  made.features = random_tensor(rng, {sequences, nodes + 4, width}, dtype);
  ops::NewTokens& fresh = made.fresh;
  fresh.count = integers({draft_sequences}, number(0, 3));
  fresh.ids = integers({draft_sequences, tree.kept_rows.size(1) + pick(rng, 0, 1)}, number(0, 99));
  fresh.positions = integers(fresh.ids.sizes(), number(0, 40));
  fresh.features = random_tensor(rng, {draft_sequences, fresh.ids.size(1), width}, dtype);
  return made;
}

// use(case, name) for cycles of every kind.
template <class Use>
void for_commit_cases(std::mt19937& rng, Use use) {
  for (const int64_t images : {1, 3}) {
    for (const int64_t pairs : {1, 2}) {
      for (const int64_t depth : {0, 1, 4, 9}) {
        for (const bool row_ends : {false, true}) {
          for (const int64_t drafter : {1, 2}) {
            use(commit_case(rng, images, pairs, depth, row_ends, drafter),
                "images " + std::to_string(images) + " pairs " + std::to_string(pairs) + " depth " +
                    std::to_string(depth) + (row_ends ? " row ends" : "") + " drafter " +
                    std::to_string(drafter));
          }
        }
      }
    }
  }
}

}  // namespace lamplighter::test
