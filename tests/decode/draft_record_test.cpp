#include <ATen/Parallel.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "decode/draft_record.h"
#include "decode/recorder.h"
#include "tests/decode/toy.h"
#include "tests/decode/toy_methods.h"

// What a run records of its drafts: the probabilities of their nodes, and what was refused.
namespace lamplighter::test {
namespace {

constexpr std::int64_t kRecordedImages = 5;

at::Tensor random_rows(std::int64_t images, std::int64_t rows, std::int64_t vocabulary) {
  const at::Tensor values = at::rand({images, rows, vocabulary}) + 0.01;
  return values / values.sum(2, true);
}

class RecordDraftTest : public ::testing::Test {
 protected:
  RecordDraftTest() {
    draft_.nodes = topology(tree_, c10::kCPU);
    draft_.tokens = at::tensor({0, 2, 4, 1, 3, 0, 4, 1, 0, -1}, at::kLong).view({2, 5});
    draft_.distributions = random_rows(2, 3, 5);
    verified_.target = random_rows(2, 5, 5);
  }
  float at(const ops::Distributions& rows, std::int64_t image, std::int64_t row, std::int64_t token) const {
    return rows.values[image][row][token].item<float>();
  }

  const Tree tree_ = make_tree({{0}, {1}, {0, 0}, {1, 0}});
  Draft draft_;
  Verified verified_;
};

TEST_F(RecordDraftTest, NodesHaveTheProbabilitiesOfTheirTokensBehindTheirParents) {
  const at::Tensor record = record_draft(draft_, verified_, true);
  for (std::int64_t image = 0; image < 2; ++image) {
    const std::vector<DraftedNode> nodes = drafted_nodes(record[image]);
    ASSERT_EQ(nodes.size(), 5U);
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      const auto token = draft_.tokens[image][static_cast<std::int64_t>(n)].item<std::int64_t>();
      const std::int64_t parent = tree_.parent[n];
      EXPECT_EQ(nodes[n].parent, parent);
      EXPECT_EQ(nodes[n].token, token);
      const bool none = parent < 0 || token < 0;
      EXPECT_EQ(nodes[n].target, none ? 0 : at(verified_.target, image, parent, token)) << n;
      const std::int64_t row = none ? 0 : tree_.draft_row[static_cast<std::size_t>(parent)];
      EXPECT_EQ(nodes[n].draft, none ? 0 : at(draft_.distributions, image, row, token)) << n;
    }
  }
}

TEST_F(RecordDraftTest, ChildrenThatWereNotSampledAreCertain) {
  for (const DraftedNode& node : drafted_nodes(record_draft(draft_, verified_, false)[0]))
    EXPECT_EQ(node.draft, node.parent < 0 ? 0 : 1);
  draft_.distributions = {};
  EXPECT_EQ(drafted_nodes(record_draft(draft_, verified_, true)[0])[1].draft, 1);
}

TEST_F(RecordDraftTest, RowParallelDraftsHaveNoTree) {
  draft_.kind = ParallelPositions{};
  EXPECT_FALSE(record_draft(draft_, verified_, true).defined());
}

// Nodes 1, 2, 3 below the root, 4 and 5 below node 2, which is accepted.
TEST(DraftedTreeTest, ListsWhatWasRefusedOnTheWay) {
  ImageReport image;
  image.last_token = 7;
  image.accepted = 1;
  image.path = {0, 2, -1};
  image.nodes = {{-1, 0, 0, 0},         {0, 3, 0.25F, 0.5F},   {0, 4, 0.5F, 0.25F}, {0, 6, 0.125F, 0.5F},
                 {2, 5, 0.125F, 0.25F}, {2, 5, 0.125F, 0.25F}, {2, -1, 0, 0}};
  const auto refused = [&](Walk walk) {
    std::vector<std::int64_t> nodes;
    for (const RefusedNode& node : drafted_tree(image, walk).refused) nodes.push_back(node.node);
    return nodes;
  };
  EXPECT_THAT(refused(Walk::nodes), testing::ElementsAre(1, 4));
  EXPECT_THAT(refused(Walk::longest_chain), testing::ElementsAre(1, 3, 4));
  const DraftedTree tree = drafted_tree(image, Walk::nodes);
  EXPECT_EQ(tree.accepted_node, 2);
  EXPECT_THAT(tree.parents, testing::ElementsAre(-1, 0, 0, 0, 2, 2, 2));
  EXPECT_THAT(tree.tokens, testing::ElementsAre(7, 3, 4, 6, 5, 5, -1));
  EXPECT_EQ(tree.refused[0].target, 0.25F);
  EXPECT_EQ(tree.refused[0].draft, 0.5F);
}

struct RecordCase {
  std::string name;
  Method method;
  bool row_ends = false;
};

void PrintTo(const RecordCase& test, std::ostream* out) {
  *out << test.name;
}

class RecordedRunTest : public ::testing::TestWithParam<RecordCase> {
 protected:
  void SetUp() override { at::set_num_threads(1); }

  static DecodeRequest request(std::int64_t number) {
    SamplingOptions sampling;
    sampling.cfg_scale = 2;
    sampling.temperature = number == 3 ? 0.0F : 1.0F;
    return {sampling, 30 + static_cast<std::uint64_t>(number)};
  }

  // The images of a run, by a recorder.
  std::vector<RecordedImage> images(bool record) const {
    const Grid grid = toy_.grid();
    RunShape shape;
    shape.grid = &grid;
    shape.images = 2;
    shape.prompt_length = toy_.target.manifest().prompt->length;
    shape.guided = true;
    shape.record = record;
    Recorder recorder(GetParam().method);
    decode(toy_.models(), GetParam().method, shape, Queue{toy_, kRecordedImages, request},
           [&](const Report& report) {
             recorder.add(report);
             return true;
           });
    std::vector<RecordedImage> all;
    for (std::int64_t number = 0; number < kRecordedImages; ++number) all.push_back(recorder.take(number));
    return all;
  }

  void check_cycle(const RecordedImage& image, const Cycle& cycle, bool greedy) const {
    const DraftedTree& tree = *cycle.drafted;
    std::vector<std::int64_t> path;  // the last node first
    for (std::int64_t node = tree.accepted_node; node >= 0;
         node = tree.parents[static_cast<std::size_t>(node)])
      path.push_back(node);
    std::reverse(path.begin(), path.end());
    ASSERT_EQ(static_cast<std::int64_t>(path.size()), cycle.accepted + 1);
    for (std::int64_t i = -1; i < std::min(cycle.committed, cycle.accepted); ++i) {
      const auto code =
          static_cast<std::size_t>(image.statistics.order[static_cast<std::size_t>(cycle.first + i)]);
      const auto node = static_cast<std::size_t>(path[static_cast<std::size_t>(i + 1)]);
      EXPECT_EQ(tree.tokens[node], image.codes[code]) << i;
    }
    for (const RefusedNode& refused : tree.refused) {
      const std::int64_t parent = tree.parents[static_cast<std::size_t>(refused.node)];
      EXPECT_THAT(path, testing::Contains(parent));
      EXPECT_THAT(path, testing::Not(testing::Contains(refused.node)));
      for (const float probability : {refused.target, refused.draft}) {
        EXPECT_GE(probability, 0);
        EXPECT_LE(probability, 1);
      }
      // The first child is accepted with min(1, p / q).
      const bool is_first =
          std::find(tree.parents.begin(), tree.parents.end(), parent) == tree.parents.begin() + refused.node;
      if (is_first && !greedy && GetParam().method.verify.rule == Rule::exact) {
        EXPECT_LT(refused.target, refused.draft * 1.00001F);
      }
    }
  }

  const Toy toy_{small_shape(GetParam().row_ends)};
};

TEST_P(RecordedRunTest, ShowsWhatWasDraftedAndChangesNoToken) {
  const std::vector<RecordedImage> plain = images(false), recorded = images(true);
  const bool is_tree = GetParam().method.row_window == 0 && GetParam().method.draft_method != &make_zipar;
  std::size_t refused = 0;
  for (std::size_t number = 0; number < plain.size(); ++number) {
    EXPECT_EQ(recorded[number].codes, plain[number].codes);
    EXPECT_EQ(recorded[number].statistics.order, plain[number].statistics.order);
    std::int64_t committed = 1;
    for (const Cycle& cycle : plain[number].statistics.cycles) EXPECT_FALSE(cycle.drafted);
    for (const Cycle& cycle : recorded[number].statistics.cycles) {
      committed += cycle.committed;
      ASSERT_EQ(cycle.drafted.has_value(), is_tree);
      if (!is_tree) continue;
      check_cycle(recorded[number], cycle, number == 3);
      refused += cycle.drafted->refused.size();
    }
    EXPECT_EQ(committed, toy_.grid().tokens());
  }
  EXPECT_EQ(refused > 0, is_tree);
}

std::vector<RecordCase> record_cases() {
  std::vector<RecordCase> cases{{"chain", static_method(preset_tree("chain-4"))},
                                {"bushy", static_method(bushy_tree())},
                                {"bushy_rows", static_method(bushy_tree()), true},
                                {"top_children", static_method(bushy_tree(), "exact", true)},
                                {"traversal", static_method(bushy_tree(), "traversal")},
                                {"typical", static_method(bushy_tree(), "typical")},
                                {"dynamic", dynamic_method(2, 3, 7)},
                                {"ending", ending_method("chain-4", 0.3F)},
                                {"window", window_method("chain-4")},
                                {"adapting", adapting(window_method("chain-4"))},
                                {"dynamic_adapting", adapting(dynamic_method(2, 3, 7))},
                                {"front", front_method("chain-4", 2)},
                                {"self", self_method(bushy_tree(), 1)},
                                {"official_window", official_window("chain-4")},
                                {"zipar", zipar_method(2)},
                                {"row_windows", row_windows(2, 2)}};
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Methods, RecordedRunTest, ::testing::ValuesIn(record_cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace lamplighter::test
