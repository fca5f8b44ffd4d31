#include "propose/method.h"

#include <gtest/gtest.h>

#include "lamplighter/pipeline.h"

namespace lamplighter {
namespace {

TEST(DefaultTree, StaysWhereADeviceReadsWeightsLongerThanItMultiplies) {
  EXPECT_EQ(default_tree("cuda", 1), "lantern-58");
  EXPECT_EQ(default_tree("cuda", 2), "lantern-26");
  std::int64_t before = 64;
  for (const std::int64_t batch : {1, 2, 3, 4, 8, 12, 16, 25, 37}) {
    const std::int64_t nodes = preset_tree(default_tree("cuda", batch)).size();
    EXPECT_LE(2 * batch * nodes, 150) << batch;
    EXPECT_LE(nodes, before) << batch;
    before = nodes;
  }
  EXPECT_EQ(default_tree("cuda", 1000), "chain-1");  // drafts at all
}

TEST(DefaultTree, IsAShortChainOnACpu) {
  for (const std::int64_t batch : {1, 8}) EXPECT_EQ(default_tree("cpu", batch), "chain-4");
}

TEST(DefaultTree, GivesWayToATreeThatIsNamed) {
  Manifest manifest;
  manifest.drafters["d"];
  manifest.first_drafter = "d";
  manifest.tokens.codebook_size = 16;
  MethodOptions method;
  method.method = "eagle";
  EXPECT_EQ(resolve_method(method, manifest, "cuda", 2).tree, "lantern-26");
  EXPECT_EQ(resolve_method(method, manifest, "cpu", 2).tree, "chain-4");
  method.tree = "chain-2";
  EXPECT_EQ(resolve_method(method, manifest, "cuda", 2).tree, "chain-2");
}

}  // namespace
}  // namespace lamplighter
