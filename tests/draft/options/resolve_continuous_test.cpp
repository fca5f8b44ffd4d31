#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "draft/options/options.h"
#include "draft/registry.h"
#include "lamplighter/error.h"
#include "lamplighter/method.h"
#include "tests/error_of.h"

namespace lamplighter {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

Manifest bundle_of_vectors(int side = 8) {
  Manifest manifest;
  manifest.name = "b";
  manifest.tokens.kind = "continuous";
  manifest.drafters["small"].kind = "continuous";
  manifest.drafters["other"].kind = "continuous";
  manifest.first_drafter = "small";
  manifest.grids.push_back({16 * side, 16 * side, side, side, {}, {}, {}});
  return manifest;
}

std::string refusal(const MethodOptions& options, const Manifest& manifest = bundle_of_vectors()) {
  return error_of(ExitCode::usage, [&] { resolve_method(options, manifest); });
}

MethodOptions options_of(const std::string& method, const std::string& rule = "") {
  MethodOptions options;
  options.method = method;
  options.rule = rule;
  return options;
}

TEST(ResolveContinuous, DefaultsAreThoseOfTheMethodAndStaySo) {
  const MethodOptions ar = resolve_method(options_of("ar"), bundle_of_vectors());
  EXPECT_EQ(ar.steps, 64);
  EXPECT_EQ(ar.last_noise, "off");
  EXPECT_EQ(resolve_method(options_of("ar"), bundle_of_vectors(16)).steps, 64);
  EXPECT_EQ(resolve_method(options_of("ar"), bundle_of_vectors(4)).steps, 16);
  const MethodOptions cspd = resolve_method(options_of("cspd"), bundle_of_vectors());
  EXPECT_EQ(cspd.rule, "exact");
  EXPECT_EQ(cspd.drafter, "small");
  EXPECT_EQ(cspd.gamma, 4);
  EXPECT_EQ(cspd.cap, 1000);
  EXPECT_FLOAT_EQ(*cspd.prefill_ratio, 0.05F);
  EXPECT_FALSE(cspd.steps.has_value());
  const MethodOptions official = resolve_method(options_of("cspd", "official"), bundle_of_vectors(16));
  EXPECT_EQ(official.steps, 256);
  EXPECT_EQ(official.cap, 100);
  EXPECT_FLOAT_EQ(*official.prefill_ratio, 0.15F);
  for (const MethodOptions& resolved : {ar, cspd}) EXPECT_EQ(refusal(resolved), "");
  EXPECT_EQ(refusal(official, bundle_of_vectors(16)), "");
}

TEST(ResolveContinuous, WhatHasNoUseIsRefused) {
  EXPECT_THAT(refusal(options_of("eagle")), HasSubstr("are continuous; use ar or cspd"));
  EXPECT_THAT(refusal(options_of("cspd", "lantern")), HasSubstr("rule: got 'lantern'"));
  const auto with = [](MethodOptions options, auto change) {
    change(options);
    return refusal(options);
  };
  EXPECT_THAT(with(options_of("ar"), [](auto& o) { o.gamma = 3; }),
              HasSubstr("gamma is read by method cspd; this run uses method ar"));
  EXPECT_THAT(with(options_of("ar"), [](auto& o) { o.steps = 65; }), HasSubstr("steps: got 65"));
  EXPECT_THAT(with(options_of("cspd"), [](auto& o) { o.steps = 3; }),
              HasSubstr("steps is read by rule official; this run uses rule exact"));
  EXPECT_THAT(with(options_of("cspd"), [](auto& o) { o.last_noise = "on"; }),
              HasSubstr("last_noise is read by method ar"));
  EXPECT_THAT(with(options_of("cspd"), [](auto& o) { o.tree = "chain-3"; }),
              HasSubstr("tree is read for tokens that are codes"));
  EXPECT_THAT(with(options_of("cspd"), [](auto& o) { o.prefill_ratio = 1.1F; }), HasSubstr("prefill_ratio"));
  EXPECT_THAT(with(options_of("cspd"), [](auto& o) { o.drafter = "third"; }), HasSubstr("other, small"));
  EXPECT_THAT(with(options_of("cspd", "official"), [](auto& o) { o.cap = 1001; }), HasSubstr("cap"));
}

TEST(ResolveContinuous, CodesAndVectorsHaveMethodsOfTheirOwn) {
  Manifest codes;
  codes.name = "b";
  codes.drafters["d"];
  EXPECT_THAT(refusal(options_of("cspd"), codes), HasSubstr("are codes"));
  MethodOptions steps;
  steps.steps = 3;
  EXPECT_THAT(refusal(steps, codes), HasSubstr("steps is read for tokens that are continuous"));
  EXPECT_THAT(missing_for(find_method("cspd"), codes), Contains("tokens.kind: continuous"));
  EXPECT_THAT(missing_for(find_method("sjd"), bundle_of_vectors()), Contains("tokens.kind: codes"));
  EXPECT_EQ(missing_for(find_method("cspd"), bundle_of_vectors()), missing_for_tokens(bundle_of_vectors()));
  Manifest alone = bundle_of_vectors();
  alone.drafters.clear();
  EXPECT_THAT(missing_for(find_method("cspd"), alone), Contains("drafters"));
}

}  // namespace
}  // namespace lamplighter
