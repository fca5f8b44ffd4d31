#include "draft/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/suggestion.h"
#include "lamplighter/error.h"
#include "lamplighter/method.h"
#include "tests/error_of.h"

namespace lamplighter {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

Manifest bundle_with_drafter() {
  Manifest manifest;
  manifest.directory = "b";
  manifest.drafters["d"];
  manifest.drafters["m"].kind = "model";
  manifest.drafters["h"].kind = "medusa";
  manifest.drafters["h"].heads = 4;
  manifest.drafters["s"].kind = "mlp";
  manifest.drafters["s"].heads = 4;
  manifest.drafters["f"].kind = "flash";
  manifest.drafters["f"].heads = 4;
  manifest.drafters["t"].kind = "eagle-3";
  manifest.drafters["r"].kind = "refine";
  manifest.modules["target"].methods = {"forward_layers", "forward_features"};
  manifest.first_drafter = "d";
  manifest.tokens.codebook_size = 64;
  manifest.cache.layers = 4;
  return manifest;
}

std::string refusal(const MethodOptions& options, const Manifest& manifest) {
  return error_of([&] { resolve_method(options, manifest); });
}

TEST(Registry, NamesAreUniqueAndTheBaselineIsFirst) {
  std::set<std::string> names;
  for (const MethodEntry& method : methods()) {
    names.insert(method.name);
    EXPECT_STRNE(method.meaning, "") << method.name;
    EXPECT_EQ(&find_method(method.name), &method);
  }
  EXPECT_EQ(names.size(), methods().size());
  EXPECT_STREQ(methods().front().name, kBaseline);
  EXPECT_FALSE(methods().front().drafts());
}

TEST(Registry, OnlyNetworksThatDraftTokenByTokenGrowTrees) {
  std::vector<std::string> growing;
  for (const MethodEntry& method : methods()) {
    if (method.grows_trees()) growing.emplace_back(method.name);
  }
  EXPECT_EQ(list_of(growing), "eagle, eagle-2, eagle-3, lantern, lantern++, draft-model");
}

TEST(Registry, UnknownMethodsAreRefusedWithTheList) {
  MethodOptions options;
  options.method = "magic";
  EXPECT_EQ(refusal(options, {}), "method: got 'magic', expected " + list_of(method_names()));
  const std::vector<std::string> all = method_names(), drafting = method_names(true);
  EXPECT_THAT(list_of(all), HasSubstr("ar, eagle, eagle-2, eagle-3, lantern, lantern++"));
  EXPECT_EQ(std::vector<std::string>(all.begin() + 1, all.end()), drafting);
}

TEST(Registry, EveryMethodResolvesToItsDefaultsAndStaysSo) {
  const Manifest manifest = bundle_with_drafter();
  for (const MethodEntry& method : methods()) {
    if (method.is_continuous()) continue;
    MethodOptions options;
    options.method = method.name;
    const MethodOptions resolved = resolve_method(options, manifest);
    EXPECT_EQ(resolved.rule, method.verifies() ? to_string(method.rule) : "") << method.name;
    EXPECT_EQ(resolved.children, method.children) << method.name;
    EXPECT_EQ(resolved.tree == "dynamic", method.tree == TreeKind::dynamic) << method.name;
    const std::map<DraftKind, std::string> first{
        {DraftKind::eagle, "d"}, {DraftKind::model, "m"},   {DraftKind::medusa, "h"}, {DraftKind::mlp, "s"},
        {DraftKind::flash, "f"}, {DraftKind::eagle_3, "t"}, {DraftKind::refine, "r"}};
    EXPECT_EQ(resolved.drafter, method.drafter ? first.at(*method.drafter) : "") << method.name;
    EXPECT_EQ(refusal(resolved, manifest), "") << method.name;
  }
}

TEST(Registry, SaysWhatABundleLacks) {
  Manifest manifest;
  manifest.directory = "b";
  for (const MethodEntry& method : methods()) {
    if (method.is_continuous()) continue;
    const bool lacks = method.needs_drafter();
    const std::vector<std::string> missing = missing_for(method, manifest);
    EXPECT_EQ(missing.size(), missing_for_tokens(manifest).size() + (lacks ? 1 : 0)) << method.name;
    EXPECT_EQ(missing.back() == "drafters", lacks) << method.name;
    EXPECT_THAT(missing, Not(Contains("modules.image_decoder"))) << method.name;
    EXPECT_THAT(missing_for(method, bundle_with_drafter()), Not(Contains("drafters"))) << method.name;
    MethodOptions options;
    options.method = method.name;
    EXPECT_EQ(refusal(options, manifest).find("no drafter") != std::string::npos, lacks) << method.name;
  }
}

TEST(Registry, RowsWithOtherTokensAreNotSampledSideBySide) {
  for (const std::string beside : {"", "row_end", "preview"}) {
    Manifest manifest = bundle_with_drafter();
    Grid& grid = manifest.grids.emplace_back();
    if (beside == "row_end") grid.row_end = {7};
    if (beside == "preview") grid.preview_rows = grid.preview_columns = 2;
    EXPECT_EQ(beside_rows(manifest), beside);
    for (const MethodEntry& method : methods()) {
      const auto lacks = missing_for(method, manifest);
      const bool refused =
          (!beside.empty() && method.is_row_parallel()) || (beside == "row_end" && method.needs_refiner());
      EXPECT_EQ(std::count(lacks.begin(), lacks.end(), "grids without " + beside), refused ? 1 : 0)
          << method.name;
    }
  }
}

TEST(Registry, TheBaselineHasNoOptions) {
  MethodOptions options;
  options.dynamic_nodes = 3;
  EXPECT_THAT(refusal(options, {}), HasSubstr("dynamic_nodes is read by method eagle-2; "));
}

}  // namespace
}  // namespace lamplighter
