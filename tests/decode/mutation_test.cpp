#include <ATen/Parallel.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <functional>
#include <ostream>

#include "tests/decode/fresh_caches.h"
#include "tests/decode/loop_distribution.h"
#include "tests/decode/toy_methods.h"

// Classic bugs of speculative decoding, planted into the loop, and the checks that must find them. The loop
// here is that of decode(), with hooks between its stages. kernels/verify_distribution_test.cpp plants bugs
// into the rule: a residual from T instead of (T - D)+, no update of the residual between siblings, the
// sampled rule for deterministic children, an unfiltered bonus token.
namespace lamplighter::test {
namespace {

constexpr std::int64_t kMutantImages = std::int64_t{1} << 15;

// What one run of the loop hands from cycle to cycle; a hook may change all of it.
struct Cycle {
  const Models& models;
  const Method& method;
  DecodeState& state;
  Draft& tree;
  Scores& scores;
  Verified& verified;
  std::int64_t number;  // 0: the prefill
};
using Hook = std::function<void(Cycle&)>;

enum Check : unsigned { kGreedy = 1, kTargetCache = 2, kDraftCache = 4, kDistribution = 8, kAll = 15 };

// A bug, or none, and the checks that find it.
struct Bug {
  std::string name = "none";
  unsigned found_by = 0;
  Hook before_draft = {}, before_score = {}, after_verify = {}, instead_of_commit = {};
};

void PrintTo(const Bug& bug, std::ostream* out) {
  *out << bug.name;
}

using AfterCommit = std::function<void(const DecodeState&)>;

at::Tensor decode_with(const Bug& bug, const Models& models, const Method& method, const Prompts& prompts,
                       const std::vector<DecodeRequest>& requests, const Grid& grid,
                       const AfterCommit& inspect = {}) {
  const c10::InferenceMode inference;
  DecodeState state = make_state(models, method, prompts, requests, grid);
  Draft tree = last_token(state);
  Scores scores = prefill(models, prompts, state);
  Verified verified;
  Cycle cycle{models, method, state, tree, scores, verified, 0};
  const auto plant = [&](const Hook& hook) {
    if (hook) hook(cycle);
  };
  while (true) {
    verified = verify(models, method, state, tree, scores);
    plant(bug.after_verify);
    if (bug.instead_of_commit) {
      bug.instead_of_commit(cycle);
    } else {
      commit(state, tree, scores, verified);
    }
    if (inspect) inspect(state);
    ++cycle.number;
    if (state.run.counters.steps.min().item<std::int64_t>() == state.run.counters.total)
      return state.run.counters.codes.narrow(1, 0, state.run.counters.total).contiguous();
    plant(bug.before_draft);
    tree = draft(state);
    plant(bug.before_score);
    scores = score(models, state, tree);
  }
}

// The drafter is shown the features of the cycle before.
Bug stale_features() {
  return {"stale_features", kDraftCache, [last = at::Tensor()](Cycle& cycle) mutable {
            at::Tensor& fresh = eagle(cycle.state).fresh.features;
            const at::Tensor now = fresh.clone();
            if (cycle.number > 2) fresh.copy_(last);
            last = now;
          }};
}

void shift(DecodeState& state, std::int64_t by) {
  state.run.counters.position = state.run.counters.position + by;
}

Bug target_position() {
  return {"position_of_the_target_off_by_one",
          kAll,
          {},
          [](Cycle& cycle) { shift(cycle.state, 1); },
          [](Cycle& cycle) {
            if (cycle.number > 0) shift(cycle.state, -1);
          }};
}

Bug drafter_position(std::int64_t by = 1) {
  return {"position_of_the_drafter_off_by_one", kDraftCache,
          [by](Cycle& cycle) {
            shift(cycle.state, by);
            eagle(cycle.state).fresh.positions.add_(by);
          },
          [by](Cycle& cycle) { shift(cycle.state, -by); }};
}

// A chain ends before the second token, or not, by what that token is.
void end_by_the_token_itself(Cycle& cycle) {
  if (cycle.tree.tokens.size(1) < 3) return;
  at::Tensor rest = cycle.tree.tokens.narrow(1, 2, cycle.tree.tokens.size(1) - 2);
  rest.masked_fill_(rest.select(1, 0).remainder(2).eq(0).unsqueeze(1), -1);
}

// The rows behind the root stay where they are, whichever nodes were accepted.
void keep_wrong_cache_row(Cycle& cycle) {
  const at::Tensor before = cycle.state.run.cache.clone();
  commit(cycle.state, cycle.tree, cycle.scores, cycle.verified);
  cycle.state.run.cache = before;
}

// Behind a leaf, the last token comes from all tokens, not from those that top-k keeps.
void sample_unfiltered_bonus(Cycle& cycle) {
  const DecodeState& state = cycle.state;
  if (cycle.number == 0) return;
  const Filter all{state.run.temperature, at::zeros_like(state.run.target_filter.top_k),
                   state.run.target_filter.top_p};
  const at::Tensor rows = ops::probabilities(distributions(
      state.run, all, cycle.models.target->logits(cycle.scores.hidden), cycle.tree.nodes.depths));
  const at::Tensor last = cycle.verified.walk.path.gather(1, cycle.verified.walk.count.unsqueeze(1));
  const at::Tensor row = rows.gather(1, last.unsqueeze(2).expand({-1, 1, rows.size(2)}));
  const at::Tensor uniforms =
      ops::uniforms(state.run.seeds, state.run.counters.steps, ops::Purpose::accept, 1);
  const at::Tensor sampled = ops::sample(row, uniforms, state.run.temperature).squeeze(1);
  const at::Tensor inner = cycle.tree.nodes.draft_rows.squeeze(0).index_select(0, last.squeeze(1)) >= 0;
  cycle.verified.walk.token = at::where(inner, cycle.verified.walk.token, sampled);
}

std::vector<Bug> bugs() {
  return {{},
          stale_features(),
          target_position(),
          drafter_position(),
          {"wrong_cache_row_kept", kAll, {}, {}, {}, &keep_wrong_cache_row},
          {"unfiltered_bonus_token", kDistribution, {}, {}, &sample_unfiltered_bonus},
          {"chain_ends_by_the_token_itself", kDistribution, {}, &end_by_the_token_itself}};
}

// Children are verified by the rows that the nodes a level up were sampled from.
void take_draft_rows_of_another_depth(Cycle& cycle) {
  const at::Tensor rows = ops::probabilities(cycle.tree.distributions);
  cycle.tree.distributions = {rows.roll(1, 1)};
}

// The drafter does not see the first token that a cycle kept.
void leave_token_out(Cycle& cycle) {
  ops::NewTokens& fresh = eagle(cycle.state).fresh;
  const at::Tensor more = (fresh.count > 1).unsqueeze(1);
  fresh.ids.copy_(at::where(more, fresh.ids.roll(-1, 1), fresh.ids));
}

// Where a small target drafts.
std::vector<Bug> model_bugs() {
  return {{},
          drafter_position(-1),
          {"token_left_out_of_the_drafter", kDraftCache, &leave_token_out},
          {"draft_rows_of_another_depth", kDistribution, {}, &take_draft_rows_of_another_depth}};
}

class Mutation : public ::testing::TestWithParam<Bug> {
 protected:
  void SetUp() override { at::set_num_threads(1); }

  bool finds(Check check) const { return (GetParam().found_by & check) != 0; }

  static SyntheticShape shape() {
    SyntheticShape shape;
    shape.vocabulary = 12;
    shape.rows = 3;
    shape.columns = 5;
    shape.weight_scale = 1.5;
    return shape;
  }

  at::Tensor run(const Prompts& prompts, const std::vector<DecodeRequest>& requests,
                 const AfterCommit& inspect = {}) const {
    return decode_with(GetParam(), toy_.models(), method_, prompts, requests, toy_.grid(), inspect);
  }

  std::vector<DecodeRequest> requests(float temperature) const {
    std::vector<DecodeRequest> result;
    for (const std::int64_t number : numbers_) {
      SamplingOptions sampling = run_sampling();
      sampling.temperature = temperature;
      result.push_back({sampling, static_cast<std::uint64_t>(number)});
    }
    return result;
  }

  void expect_distribution(const Toy& toy, const Method& method) const {
    const SamplingOptions sampling = run_sampling();
    const JointDistribution counts = counted_distribution(
        toy, sampling, distribution_images(kMutantImages), [&](const Prompts& prompts, const auto& requests) {
          return decode_with(GetParam(), toy.models(), method, prompts, requests, toy.grid());
        });
    EXPECT_EQ(fits(lossless_distribution(toy, sampling), counts), !finds(kDistribution));
  }

  const Toy toy_{shape()};
  const Method method_ = static_method(bushy_tree());
  const std::vector<std::int64_t> numbers_{0, 1, 2, 3, 4, 5};
};

TEST_P(Mutation, GreedyTokensAreThoseOfAutoregression) {
  const Prompts prompts = toy_.prompts(numbers_, true);
  const at::Tensor expected = decode(toy_.models(), {}, prompts, requests(0), toy_.grid());
  EXPECT_EQ(at::equal(run(prompts, requests(0)), expected), !finds(kGreedy));
}

TEST_P(Mutation, CachesAreThoseOfAFreshRun) {
  const Prompts prompts = toy_.prompts(numbers_, true);
  FreshCaches fresh(toy_, method_, prompts);
  bool target = true, drafter = true;
  run(prompts, requests(0.9F), [&](const DecodeState& state) {
    target = target && fresh.target_matches(state);
    drafter = drafter && fresh.drafter_matches(state);
  });
  EXPECT_EQ(target, !finds(kTargetCache));
  EXPECT_EQ(drafter, !finds(kDraftCache));
}

TEST_P(Mutation, ImagesFollowTheDistributionOfTheTarget) {
  expect_distribution(Toy(run_shape()), static_method(make_tree({{0}, {1}, {0, 0}, {1, 0}})));
}

INSTANTIATE_TEST_SUITE_P(Bugs, Mutation, ::testing::ValuesIn(bugs()),
                         [](const auto& test) { return test.param.name; });

// The same where a small target drafts.
class ModelMutation : public Mutation {};

TEST_P(ModelMutation, CachesAreThoseOfAFreshRun) {
  const Toy toy = make_toy(shape(), true);
  const Prompts prompts = toy.prompts(numbers_, true);
  FreshCaches fresh(toy, method_, prompts);
  bool same = true;
  decode_with(GetParam(), toy.models(), method_, prompts, requests(0.9F), toy.grid(),
              [&](const DecodeState& state) { same = same && fresh.drafter_matches(state); });
  EXPECT_EQ(same, !finds(kDraftCache));
}

TEST_P(ModelMutation, ImagesFollowTheDistributionOfTheTarget) {
  expect_distribution(make_toy(run_shape(), true), static_method(preset_tree("chain-3")));
}

INSTANTIATE_TEST_SUITE_P(Bugs, ModelMutation, ::testing::ValuesIn(model_bugs()),
                         [](const auto& test) { return test.param.name; });

// Without a bug, the loop of these tests is that of the engine.
TEST(Hooks, ChangeNothingByThemselves) {
  at::set_num_threads(1);
  const Toy toy(run_shape());
  const Method method = static_method(bushy_tree());
  const Prompts prompts = repeated_prompt(toy, 64);
  std::vector<DecodeRequest> requests;
  for (std::uint64_t seed = 0; seed < 64; ++seed) requests.push_back({run_sampling(), seed});
  EXPECT_TRUE(at::equal(decode_with(Bug(), toy.models(), method, prompts, requests, toy.grid()),
                        decode(toy.models(), method, prompts, requests, toy.grid())));
}

}  // namespace
}  // namespace lamplighter::test
