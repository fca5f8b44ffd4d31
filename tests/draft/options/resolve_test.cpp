#include "draft/options/resolve.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/suggestion.h"
#include "draft/options/options.h"
#include "lamplighter/error.h"
#include "lamplighter/method.h"
#include "tests/error_of.h"
#include "tree/tree.h"

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

Manifest bundle_with_drafter() {
  Manifest manifest;
  manifest.drafters["d"];
  manifest.first_drafter = "d";
  manifest.tokens.codebook_size = 16;
  manifest.modules["target"].methods = {"forward_layers"};
  manifest.cache.layers = 4;
  return manifest;
}

TEST(DefaultTree, GivesWayToATreeThatIsNamed) {
  const Manifest manifest = bundle_with_drafter();
  MethodOptions method;
  method.method = "eagle";
  EXPECT_EQ(resolve_method(method, manifest, "cuda", 2).tree, "lantern-26");
  EXPECT_EQ(resolve_method(method, manifest, "cpu", 2).tree, "chain-4");
  method.tree = "chain-2";
  EXPECT_EQ(resolve_method(method, manifest, "cuda", 2).tree, "chain-2");
}

// A bundle's trees are tuned for its layer.
TEST(DefaultTree, IsAShortChainForAModel) {
  Manifest manifest = bundle_with_drafter();
  manifest.drafters["m"].kind = "model";
  manifest.trees["cuda"] = "tree.json";
  MethodOptions method;
  method.method = "draft-model";
  const MethodOptions resolved = resolve_method(method, manifest, "cuda", 2);
  EXPECT_EQ(resolved.tree, "chain-4");
  EXPECT_EQ(resolved.drafter, "m");
  method.tree = "lantern-26";
  EXPECT_EQ(resolve_method(method, manifest, "cuda", 2).tree, "lantern-26");
  method.drafter = "d";  // of another kind
  EXPECT_THROW(resolve_method(method, manifest), Error);
}

TEST(ResolveMethod, DefaultsFitSmallCodebooks) {
  for (const std::int64_t codes : {1, 2, 3, 8, 9, 10, 11}) {
    Manifest manifest = bundle_with_drafter();
    manifest.tokens.codebook_size = codes;
    MethodOptions method;
    method.method = "eagle-2";
    const MethodOptions resolved = resolve_method(method, manifest);
    EXPECT_EQ(resolved.dynamic_width, std::min<std::int64_t>(10, codes));
    EXPECT_LE(*resolved.dynamic_nodes, *resolved.dynamic_width * (1 + 4 * *resolved.dynamic_width));
    method.dynamic_width = codes + 1;
    EXPECT_THROW(resolve_method(method, manifest), Error);
    for (const char* relaxed : {"lantern", "lantern++"}) {
      method = {};
      method.method = relaxed;
      EXPECT_LT(*resolve_method(method, manifest).k, codes) << relaxed;
    }
  }
}

TEST(ResolveMethod, LenienceAsksForItsRule) {
  MethodOptions method;
  method.method = "eagle";
  EXPECT_EQ(resolve_method(method, bundle_with_drafter()).rule, "exact");
  method.lenience = 0.25F;
  EXPECT_EQ(resolve_method(method, bundle_with_drafter()).rule, "lenient");
  method.lenience.reset();
  method.rule = "lenient";
  EXPECT_EQ(resolve_method(method, bundle_with_drafter()).lenience, 0.5F);
}

// Complaints begin with the key of an option: the command line makes its flag of it.
TEST(ResolveMethod, ComplaintsBeginWithTheOption) {
  const auto refusal = [](const std::string& name, const Json& json) -> std::string {
    JsonReader reader(json, "here", ExitCode::input);
    MethodOptions method = read_options(reader);
    method.method = name;
    return error_of(ExitCode::usage, [&] { resolve_method(method, bundle_with_drafter()); });
  };
  EXPECT_EQ(refusal("eagle", {{"delta", 0.1}}),
            "delta is read by rule lantern, cool; this run uses rule exact");
  EXPECT_EQ(refusal("lantern", {{"delta", 1.5}}), "delta: got 1.5, expected 0 to 1 for rule lantern");
  EXPECT_EQ(refusal("eagle", {{"rule", "cool"}, {"delta", 1.5}}), "");
  EXPECT_EQ(refusal("eagle", {{"nu", 0.5}}), "nu is read by rule cool; this run uses rule exact");
  EXPECT_EQ(refusal("lantern", {{"alpha", 0.5}}),
            "alpha is read by rule typical; this run uses rule lantern");
  EXPECT_EQ(refusal("eagle", {{"rule", "typical"}, {"epsilon", 0.1}}), "");
  EXPECT_EQ(refusal("sjd", {{"group_gap", 0.1}}),
            "group_gap is read by rule grouped; this run uses rule exact");
  EXPECT_EQ(refusal("gsd", {{"group_gap", 0.1}, {"group_distance", 2}}), "");
  EXPECT_EQ(refusal("eagle", {{"lenience", 0.5}}), "");
  EXPECT_EQ(refusal("eagle", {{"rule", "block"}, {"lenience", 0.5}}),
            "lenience is read by rule lenient; this run uses rule block");
  EXPECT_EQ(refusal("lantern", {{"lenience", 0.5}}),
            "lenience is read by rule lenient; this run uses rule lantern");
  EXPECT_EQ(refusal("eagle", {{"lenience", 0}}), "lenience: got 0, expected 0.001 to 1");
  EXPECT_EQ(refusal("eagle", {{"lenience", 1.5}}), "lenience: got 1.5, expected 0.001 to 1");
  EXPECT_EQ(refusal("lantern", {{"lambda", 2}}),
            "lambda is read by rule lantern++; this run uses rule lantern");
  EXPECT_EQ(refusal("eagle", {{"relax_k", 3}}),
            "relax_k is read by rule lantern, lantern++; this run uses rule exact");
  EXPECT_EQ(refusal("eagle", {{"residual", "optimal"}}),
            "residual is read by rule lantern, lantern++; this run uses rule exact");
  EXPECT_EQ(refusal("eagle", {{"neighbours", "a.npy"}}),
            "neighbours is read by rule lantern, lantern++; this run uses rule exact");
  EXPECT_EQ(refusal("lantern", {{"relax_k", 16}}), "relax_k: got 16, expected 0 to 15: there are 16 codes");
  EXPECT_EQ(refusal("zipar", {{"ahead", 3}, {"zipar", "official"}}), "");
  EXPECT_EQ(refusal("zipar", {{"zipar", "dirty"}}), "zipar: got 'dirty', expected clean, official");
  std::string readers = list_of(method_names(true));  // of codes, but zipar
  readers.erase(readers.find("zipar, "), 7);
  readers.erase(readers.find(", cspd"));
  EXPECT_EQ(refusal("zipar", {{"tree", "chain-3"}}),
            "tree is read by method " + readers + "; this run uses method zipar");
  EXPECT_EQ(
      refusal("zipar", {{"init", "repeat"}}),
      "init is read by method sjd, scd, sjd-pac, eagle+sjd, flash+sjd, gsd, zipar+sjd, pjd; this run uses "
      "method zipar");
  EXPECT_EQ(refusal("sjd", {{"ahead", 3}}),
            "ahead is read by method zipar, zipar+sjd, pjd; this run uses method sjd");
  EXPECT_EQ(refusal("pjd", {{"ahead", 3}, {"tree", "chain-2"}, {"init", "above"}}), "");
  EXPECT_EQ(refusal("pjd", {{"zipar", "official"}}),
            "zipar is read by method zipar; this run uses method pjd");
  EXPECT_EQ(refusal("zipar+sjd", {{"tree", "lantern-26"}}),
            "tree lantern-26 has siblings, but method zipar+sjd drafts chains");
  EXPECT_EQ(refusal("zipar+sjd", {{"init", "sample"}}),
            "init: got 'sample', expected uniform, random, repeat, above for method zipar+sjd");
  EXPECT_EQ(refusal("eagle", {{"draft_length", "auto"}, {"draft_confidence", 0.5}}), "");
  EXPECT_EQ(refusal("eagle", {{"draft_length", "long"}}), "draft_length: got 'long', expected full, auto");
  EXPECT_EQ(refusal("eagle", {{"draft_confidence", 0.5}}),
            "draft_confidence is read by draft_length auto; this run uses draft_length full");
  EXPECT_EQ(refusal("eagle", {{"draft_length", "auto"}, {"draft_confidence", 2}}),
            "draft_confidence: got 2, expected 0 to 1");
  EXPECT_EQ(refusal("eagle", {{"draft_length", "auto"}, {"tree", "lantern-26"}}),
            "draft_length: got 'auto', expected full: the tree lantern-26 has siblings");
  EXPECT_EQ(refusal("eagle-2", {{"draft_length", "auto"}, {"tree", "dynamic"}}),
            "draft_length: got 'auto', expected full: the tree dynamic has siblings");
  for (const char* method : {"flash", "medusa", "mlp", "self", "ngram", "sjd", "refine"})
    EXPECT_EQ(refusal(method, {{"draft_length", "auto"}}),
              std::string("draft_length: got 'auto', expected full for method ") + method);
  for (const char* method : {"eagle-2", "sjd", "scd", "gsd"})
    EXPECT_EQ(refusal(method, {{"adapt", "neighbours"}}), "") << method;
  EXPECT_EQ(refusal("eagle", {{"adapt", "neighbours"}, {"tree", "dynamic"}}), "");
  EXPECT_EQ(refusal("eagle", {{"adapt", "neighbours"}}),
            "adapt is read by tree dynamic; this run uses tree chain-4");
  EXPECT_EQ(refusal("sjd-pac", {{"adapt", "neighbours"}}),
            "adapt is read by method eagle-2, sjd, scd, refine, gsd; this run uses method sjd-pac");
  EXPECT_EQ(refusal("sjd", {{"adapt", "always"}}), "adapt: got 'always', expected none, neighbours");
  EXPECT_EQ(refusal("self", {{"draft_layers", 5}}),
            "draft_layers: got 5, expected 1 to 4, the layers of the target");
  EXPECT_EQ(refusal("self", {{"draft_layers", 4}, {"draft_window", 3}}), "");
  EXPECT_EQ(refusal("self", {{"tree", "dynamic"}}), "tree: got dynamic, but method self drafts fixed trees");
  EXPECT_EQ(refusal("eagle", {{"draft_layers", 1}}),
            "draft_layers is read by method self; this run uses method eagle");
  EXPECT_EQ(refusal("eagle", {{"dynamic_width", 3}}),
            "dynamic_width is read by tree dynamic; this run uses tree chain-4");
  EXPECT_EQ(refusal("eagle-2", {{"dynamic_depth", 40}}),
            "dynamic_depth: got 40, expected 1 to 6 with dynamic_width 10");
  EXPECT_EQ(refusal("eagle-2", {{"dynamic_depth", 1}, {"dynamic_width", 2}, {"dynamic_nodes", 7}}),
            "dynamic_nodes: got 7, expected 1 to 6");
  EXPECT_EQ(refusal("eagle", {{"tree", "chain-0"}}), "tree chain-0 drafts nothing; use method ar for that");
  EXPECT_EQ(
      refusal("eagle", {{"tree", "lantern-26"}, {"rule", "block"}}),
      "rule block verifies chains, but tree lantern-26 has siblings; use rule traversal or tree chain-N");
  EXPECT_EQ(refusal("eagle", {{"drafter", "e"}}), "drafter: got 'e', this bundle has d");
  EXPECT_EQ(refusal("eagle-2", {{"children", "sampled"}}),
            "children: got 'sampled', expected top: the tree dynamic expands the most probable ones");
  EXPECT_EQ(refusal("eagle", {{"children", "top"}, {"rule", "traversal"}}),
            "children: got 'top', expected sampled for rule traversal");
  EXPECT_EQ(refusal("sjd-pac", {{"rule", "official-pac"}, {"init", "uniform"}, {"tail", "keep"}}), "");
  for (const char* method : {"eagle", "sjd", "scd", "gsd", "pjd", "ngram"})
    EXPECT_EQ(refusal(method, {{"rule", "official-pac"}}),
              std::string("rule official-pac needs method sjd-pac, but this run has ") + method);
  EXPECT_EQ(refusal("sjd-pac", {{"rule", "official-pac"}, {"init", "repeat"}}),
            "init: got 'repeat', expected uniform for rule official-pac");
  EXPECT_EQ(refusal("sjd-pac", {{"rule", "official-pac"}, {"tail", "fresh"}}),
            "tail: got 'fresh', expected keep for rule official-pac");
  EXPECT_EQ(refusal("lantern", {{"residual", "official-dynamic"}}),
            "children: got 'sampled', expected top for residual official-dynamic");
}

TEST(ResolveMethod, ChainsThatEndMayBeLonger) {
  MethodOptions method;
  method.method = "eagle";
  method.draft_length = "auto";
  const MethodOptions resolved = resolve_method(method, bundle_with_drafter());
  EXPECT_EQ(resolved.tree, "chain-6");
  EXPECT_EQ(resolved.draft_confidence, 0.4F);
}

TEST(ResolveMethod, ATargetDraftsWithAPartOfItself) {
  Manifest manifest = bundle_with_drafter();
  MethodOptions method;
  method.method = "self";
  EXPECT_EQ(resolve_method(method, manifest).draft_layers, 2);
  EXPECT_EQ(resolve_method(method, manifest).tree, "chain-4");
  manifest.name = "b";
  manifest.modules["target"].methods.clear();
  EXPECT_EQ(error_of(ExitCode::bundle, [&] { resolve_method(method, manifest); }),
            "method self: the target of bundle b has no forward_layers, which older exporters did not "
            "write; export the bundle again");
}

TEST(ResolveMethod, RowsThatEndWithATokenAreSampledOneByOne) {
  Manifest manifest = bundle_with_drafter();
  manifest.name = "b";
  manifest.grids.push_back({});
  manifest.grids.front().row_end = {9};
  MethodOptions method;
  method.method = "zipar";
  EXPECT_EQ(
      error_of(ExitCode::usage, [&] { resolve_method(method, manifest); }),
      "method zipar needs image rows of codes only, but in bundle b a token ends each row; sjd runs with "
      "any bundle");
}

}  // namespace
}  // namespace lamplighter
