#include <ATen/Context.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/kernels/commit/commit_cases.h"

namespace lamplighter::test {
namespace {

using ::testing::HasSubstr;
using List = std::vector<int64_t>;

List list(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.to(at::kLong).contiguous();
  return {flat.const_data_ptr<int64_t>(), flat.const_data_ptr<int64_t>() + flat.numel()};
}

int64_t value(const at::Tensor& tensor, int64_t i) {
  return tensor[i].item<int64_t>();  // [I], or [I, 1]
}

// One image before and after, in lists.
void expect_committed(const CommitCase& before, const CommitCase& after, int64_t i) {
  const ops::CommittedTree& tree = before.tree;
  const ops::Counters &old = before.state, &now = after.state;
  const int64_t count = value(tree.count, i), kept = value(tree.kept_count, i), bonus = value(tree.token, i);
  const int64_t images = tree.tokens.size(0), each = old.lengths.size(0) / images;
  List path = list(tree.path[i]), sampled;
  for (int64_t j = 1; j <= count; ++j) sampled.push_back(value(tree.tokens[i], path[static_cast<size_t>(j)]));
  sampled.push_back(bonus);
  const int64_t steps = value(old.steps, i), room = old.total - steps;
  const int64_t advance = std::min<int64_t>(count + 1, room);

  EXPECT_EQ(value(now.steps, i), steps + advance);
  List codes = list(old.codes[i]);
  std::copy(sampled.begin(), sampled.end(), codes.begin() + steps);
  EXPECT_EQ(list(now.codes[i]), codes);
  const int64_t root = advance == 0 ? value(old.root, i) : sampled[static_cast<size_t>(advance - 1)];
  EXPECT_EQ(value(now.root, i), std::max<int64_t>(root, 0));
  const bool bad = old.bad[i].item<bool>() || bonus < 0;
  EXPECT_EQ(now.bad[i].item<bool>(), bad);
  const int64_t moved = advance + kept - count;
  for (int64_t s = i * each; s < (i + 1) * each; ++s) {
    EXPECT_EQ(value(now.lengths, s), value(old.lengths, s) + moved);
    EXPECT_EQ(value(now.position, s), value(old.position, s) + moved);
    EXPECT_EQ(value(now.root_ids, s), value(now.root, i) + old.first_image_id);
    EXPECT_EQ(value(now.root_positions, s), std::min(value(now.position, s), old.last_position));
  }

  const int64_t depth = (old.report.size(1) - report::width(0)) / 3;
  const int64_t status =
      (bad ? 1 : 0) + value(tree.status, i) / 2 * 2;  // the draft model's bit stays as it was
  List report{value(old.image, i), steps, steps + advance, count, status, value(old.root, i)};
  report.insert(report.end(), sampled.begin(), sampled.end());
  report.resize(static_cast<size_t>(report::path(depth)), 0);
  report.insert(report.end(), path.begin(), path.end());
  report.resize(static_cast<size_t>(report::drafted(depth)), -1);
  const List depths = list(tree.depths[tree.depths.size(0) == 1 ? 0 : i]), tokens = list(tree.tokens[i]);
  for (int64_t d = 0; d <= depth; ++d) {
    report.push_back(0);
    for (size_t n = 0; n < tokens.size(); ++n) report.back() += depths[n] == d && tokens[n] >= 0 ? 1 : 0;
  }
  EXPECT_EQ(list(now.report[i]), report);

  List ids;  // of vocabulary, with the row end behind the last accepted code
  for (const int64_t code : sampled) ids.push_back(std::max<int64_t>(code, 0) + old.first_image_id);
  if (kept > count) ids.insert(ids.end() - 1, old.row_end);
  const int64_t of_drafter = before.fresh.count.size(0) / images;
  for (int64_t d = i * of_drafter; d < (i + 1) * of_drafter; ++d) {
    EXPECT_EQ(value(after.fresh.count, d), moved);
    List fresh = list(before.fresh.ids[d]), positions;
    std::copy(ids.begin(), ids.end(), fresh.begin());
    EXPECT_EQ(list(after.fresh.ids[d]), fresh);
    const int64_t sequence = i * each + d - i * of_drafter, position = value(old.position, sequence);
    for (size_t r = 0; r < fresh.size(); ++r)
      positions.push_back(std::min<int64_t>(position + static_cast<int64_t>(r), old.last_position - 1));
    EXPECT_EQ(list(after.fresh.positions[d]), positions);
    at::Tensor features = before.fresh.features[d].clone();
    features.narrow(0, 0, tree.kept_rows.size(1))
        .copy_(before.features[sequence].index_select(0, at::clamp(tree.kept_rows[i], 0)));
    EXPECT_TRUE(at::equal(after.fresh.features[d], features));
  }
}

TEST(CommitTokens, AppendsAdvancesAndReports) {
  std::mt19937 rng(11);
  for (int trial = 0; trial < 8; ++trial) {
    for_commit_cases(rng, [&](const CommitCase& before, const std::string& name) {
      SCOPED_TRACE(name);
      CommitCase after = before.copy();
      after.commit();
      for (int64_t i = 0; i < before.tree.tokens.size(0); ++i) expect_committed(before, after, i);
    });
  }
}

TEST(CommitTokens, RefusesWhatLeadsOutsideItsTensors) {
  std::mt19937 rng(1);
  const CommitCase good = commit_case(rng, 2, 2, 3, true, 2);
  const auto message = [&](const auto& spoil) {
    CommitCase bad = good.copy();
    spoil(bad.tree, bad.state);
    return message_of([&] { ops::commit_tokens(bad.tree, bad.state); });
  };
  EXPECT_EQ(message([](auto&, auto&) {}), "no error");
  EXPECT_THAT(message([](auto& tree, auto&) { tree.count = tree.count + 4; }),
              HasSubstr("commit_tokens: count of image 0 is "));
  EXPECT_THAT(message([](auto& tree, auto&) { tree.kept_count = tree.count + 2; }),
              HasSubstr("commit_tokens: kept_count of image 0 is "));
  EXPECT_THAT(message([](auto& tree, auto&) { tree.path = tree.path + 64; }),
              HasSubstr("commit_tokens: path of image 0 has node 64 at index 0"));
  EXPECT_THAT(message([](auto&, auto& state) { state.steps = state.steps + 40; }),
              HasSubstr("commit_tokens: image 0 has "));
  EXPECT_THAT(message([](auto&, auto& state) { state.codes = state.codes.narrow(1, 0, 20).contiguous(); }),
              HasSubstr("commit_tokens: codes have 20 columns, expected 20 and the 4 of a path"));
  EXPECT_THAT(message([](auto&, auto& state) {
                state.report = at::zeros({2, 17}, at::kLong);
              }),
              HasSubstr("commit_tokens: report has 17 columns"));
  EXPECT_THAT(message([](auto&, auto& state) { state.steps = state.steps.to(at::kInt); }),
              HasSubstr("commit_tokens: steps has dtype Int, expected Long"));
}

TEST(NewTokens, RefusesWhatLeadsOutsideItsTensors) {
  std::mt19937 rng(1);
  const CommitCase good = commit_case(rng, 2, 2, 3, true, 2);
  const auto message = [&](const auto& spoil) {
    CommitCase bad = good.copy();
    spoil(bad);
    return message_of([&] { ops::new_tokens(bad.tree, bad.features, bad.state, bad.fresh); });
  };
  EXPECT_EQ(message([](auto&) {}), "no error");
  EXPECT_THAT(message([](auto& bad) {
                bad.fresh.ids = at::zeros({4, 2}, at::kLong);
              }),
              HasSubstr("new_tokens: new_ids have 2 rows, expected at least 5"));
  EXPECT_THAT(message([](auto& bad) { bad.tree.count = bad.tree.count + 4; }),
              HasSubstr("new_tokens: count of image 0 is "));
  EXPECT_THAT(message([](auto& bad) { bad.tree.kept_rows = bad.tree.kept_rows + 90; }),
              HasSubstr("new_tokens: kept_rows of image 0 have row 90"));
  EXPECT_THAT(
      message([](auto& bad) { bad.fresh.features = bad.fresh.features.narrow(1, 0, 2).contiguous(); }),
      HasSubstr("new_tokens: new_features"));
  EXPECT_THAT(message([](auto& bad) { bad.fresh.count = at::zeros({3}, at::kLong); }),
              HasSubstr("new_tokens: new_count has 3 sequences, expected 2 or 4"));
}

TEST(TreeRows, GivesIdsAndPositions) {
  std::mt19937 rng(2);
  for (const int64_t pairs : {1, 2}) {
    for (const int64_t depth_images : {1, 3}) {
      for (const int64_t depth_rows : {1, 7}) {
        const at::Tensor codes = integers({3, 7}, [&](int64_t) { return pick(rng, -1, 9); });
        const at::Tensor depths =
            integers({depth_images, depth_rows}, [&](int64_t) { return pick(rng, 0, 6); });
        const at::Tensor position = integers({3 * pairs}, [&](int64_t) { return pick(rng, 0, 20); });
        const auto [ids, positions] = ops::tree_rows(codes, depths, position, 4, 18);
        const at::Tensor wide = (at::clamp(codes, 0) + 4).repeat_interleave(pairs, 0);
        const at::Tensor places = depths.expand({3, 7}).repeat_interleave(pairs, 0) + position.unsqueeze(1);
        EXPECT_TRUE(at::equal(ids, wide));
        EXPECT_TRUE(at::equal(positions, at::clamp(places, 0, 18)));
      }
    }
  }
}

class CudaCommitTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!at::globalContext().hasCUDA()) GTEST_SKIP() << "no CUDA device";
  }
};

TEST_F(CudaCommitTest, CommitsAndPlacesRowsLikeTheCpu) {
  std::mt19937 rng(13);
  for_commit_cases(rng, [&](const CommitCase& before, const std::string& name) {
    SCOPED_TRACE(name);
    CommitCase expected = before.copy(), got = before.copy(at::kCUDA);
    expected.commit();
    got.commit();
    const std::vector<at::Tensor*> a = got.changed(), b = expected.changed();
    for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(at::equal(a[i]->cpu(), *b[i])) << "tensor " << i;
    const auto placed = [](const CommitCase& c) {
      return ops::tree_rows(c.tree.tokens, c.tree.depths, c.state.position, 4, 18);
    };
    EXPECT_TRUE(at::equal(std::get<0>(placed(got)).cpu(), std::get<0>(placed(expected))));
    EXPECT_TRUE(at::equal(std::get<1>(placed(got)).cpu(), std::get<1>(placed(expected))));
  });
}

TEST(TreeRows, NamesWhatDoesNotFit) {
  const at::Tensor codes = at::zeros({2, 3}, at::kLong), depths = at::zeros({1, 3}, at::kLong);
  EXPECT_THAT(message_of([&] {
                ops::tree_rows(codes, at::zeros({3, 3}, at::kLong), codes[0], 0, 9);
              }),
              HasSubstr("tree_rows: depths have shape [3, 3], expected [1 or 2, 1 or 3]"));
  EXPECT_THAT(message_of([&] { ops::tree_rows(codes, depths, codes[0], 0, 9); }),
              HasSubstr("tree_rows: position has 3 sequences, expected 2 or 4 for 2 images"));
}

}  // namespace
}  // namespace lamplighter::test
