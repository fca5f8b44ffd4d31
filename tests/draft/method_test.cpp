#include "draft/method.h"

#include <gtest/gtest.h>

#include "draft/windows/jacobi.h"
#include "draft/windows/sjd_pac_official.h"
#include "lamplighter/method.h"

namespace lamplighter {
namespace {

TEST(MakeMethod, ARuleSelectsTheOfficialVariant) {
  Manifest manifest;
  manifest.tokens.codebook_size = 16;
  MethodOptions options;
  options.method = "sjd-pac";
  const auto maker = [&](const char* rule, bool greedy) {
    options.rule = rule;
    return make_method(resolve_method(options, manifest), manifest, c10::Device("cpu"), greedy).draft_method;
  };
  EXPECT_EQ(maker("exact", false), &make_jacobi);
  EXPECT_EQ(maker("official-pac", false), &make_sjd_pac_official);
  EXPECT_EQ(maker("official-pac", true), &make_jacobi);  // at temperature 0 all rules are the same
}

}  // namespace
}  // namespace lamplighter
