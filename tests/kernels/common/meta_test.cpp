#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <map>

#include "kernels/ops.h"
#include "tests/kernels/commit/commit_cases.h"
#include "tests/kernels/common/operators.h"
#include "tests/kernels/continuous/denoise_problem.h"
#include "tests/kernels/step/ar_step_cases.h"
#include "tests/kernels/step/window_step_cases.h"

namespace lamplighter::test {
namespace {

// One call of an operator on the given device; inputs hold valid contents.
using Variant = std::function<at::Tensor(at::Device, at::ScalarType)>;

at::Tensor filled(at::IntArrayRef sizes, at::ScalarType dtype, at::Device device, double value = 0.5) {
  return at::full(sizes, value, at::TensorOptions(dtype)).to(device);
}

at::Tensor attend_once(at::Device d, at::ScalarType t) {
  AttendCall a;
  a.qkv = filled({2, 3, (4 + 2 * 2) * 8}, t, d);
  a.cache = filled({2, 2, 2, 2, 16, 8}, t, d);
  a.positions = filled({2, 3}, at::kLong, d, 1);
  a.lengths = filled({2}, at::kLong, d, 5);
  a.tree_mask = filled({1, 3, 1}, at::kLong, d, 7);
  a.rotary = filled({9, 4, 2}, at::kFloat, d);
  a.layer = 1;
  a.heads = 4;
  a.kv_heads = 2;
  return a.run();
}

ops::Distributions filter_once(at::Device d, at::ScalarType t) {
  return ops::guide_and_filter(filled({4, 3, 50}, t, d),
                               {filled({2}, at::kFloat, d, 3), filled({2}, at::kFloat, d, 1),
                                filled({2}, at::kLong, d, 5), filled({2}, at::kFloat, d, 0.9), "ar"});
}

at::Tensor sample_once(const ops::Distributions& rows, at::Device d) {
  return ops::sample(rows, filled({2, 3}, at::kFloat, d), filled({2}, at::kFloat, d, 1));
}

std::tuple<at::Tensor, at::Tensor> children_once(const ops::Distributions& rows, at::Device d) {
  return ops::sample_children(rows, {filled({2}, at::kLong, d, 1), filled({2}, at::kLong, d, 2),
                                     filled({3}, at::kLong, d, 1), 4, true});
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> expand_once(const ops::Distributions& rows, at::Device d) {
  return ops::expand_dynamic(rows, filled({2, 3}, at::kFloat, d, -1), 4);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> rerank_once(at::Device d) {
  return ops::rerank_dynamic(filled({2, 36}, at::kLong, d, 1), filled({2, 36}, at::kFloat, d, -1),
                             filled({2, 2, 4}, at::kLong, d, 1), 9);
}

std::tuple<ops::Distributions, at::Tensor> drafted_once(at::Device d, at::ScalarType t) {
  const at::Tensor each = filled({2}, at::kFloat, d, 1), integers_of = filled({2}, at::kLong, d, 1);
  return ops::draft_children(filled({4, 3, 50}, t, d), {each, each, integers_of, each, "ar"},
                             {integers_of, integers_of, filled({3}, at::kLong, d, 1), 4, true});
}

ops::WindowRows window_step_once(at::Device d) {
  std::mt19937 rng(8);
  WindowStepCase made = window_step_case(rng, 2, 2, 50, 4);
  made.score(rng, 2, 0.3F);
  made = made.copy(d);
  return ops::window_step(made.step, made.window, made.state);
}

std::tuple<at::Tensor, at::Tensor> rows_once(at::Device d) {
  return ops::tree_rows(filled({2, 5}, at::kLong, d), filled({1, 5}, at::kLong, d), filled({4}, at::kLong, d),
                        0, 9);
}

ops::Verified verify_once(at::Device d) {
  ops::ScoredTree tree;
  tree.target = filled({2, 3, 4}, at::kFloat, d, 0.25);
  tree.draft = filled({2, 1, 4}, at::kFloat, d, 0.25);
  tree.tokens = filled({2, 3}, at::kLong, d, 1);
  tree.parents = filled({1, 3}, at::kLong, d, 0);
  tree.draft_rows = filled({1, 3}, at::kLong, d, 0);
  tree.uniforms = filled({2, 3}, at::kFloat, d);
  tree.temperature = filled({2}, at::kFloat, d, 1);
  tree.depth = 1;
  return ops::verify_tree(tree, {});
}

std::tuple<at::Tensor, at::Tensor> renewed_once(at::Device d) {
  const at::Tensor tokens = filled({2, 3}, at::kLong, d, 1), node = filled({1, 3}, at::kLong, d, 0);
  return ops::renew_window(
      {filled({2, 3, 4}, at::kFloat, d, 0.25), filled({2, 2, 4}, at::kFloat, d, 0.25), tokens, node, node,
       filled({2, 6}, at::kFloat, d), filled({2}, at::kFloat, d, 1), 2},
      filled({2}, at::kLong, d, 0), true);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> fan_once(at::Device d) {
  const at::Tensor tokens = filled({2, 3}, at::kLong, d, 1), node = filled({1, 3}, at::kLong, d, 0);
  return ops::renew_fan({filled({2, 3, 4}, at::kFloat, d, 0.25), filled({2, 2, 4}, at::kFloat, d, 0.25),
                         tokens, node, node, filled({2, 3}, at::kFloat, d), filled({2}, at::kFloat, d, 1), 2},
                        filled({2, 5}, at::kLong, d, 0), filled({2, 5, 2}, at::kFloat, d));
}

at::Tensor guessed_once(at::Device d) {
  at::Tensor rows = filled({2, 3, 4}, at::kFloat, d);
  const at::Tensor tokens = filled({2, 3}, at::kLong, d, -1), each = filled({2}, at::kLong, d, 1);
  return ops::fill_window(tokens, rows,
                          {filled({2, 3}, at::kFloat, d), each, each, tokens, 2, 4, WindowFill::uniform});
}

ops::GaussianPair gaussians(at::Device d) {
  const at::Tensor rows = filled({2, 3}, at::kFloat, d);
  return {rows, rows, rows, rows};
}

std::tuple<at::Tensor, at::Tensor> residual_once(at::Device d) {
  return ops::gaussian_residual(gaussians(d), filled({2}, at::kDouble, d, 0),
                                filled({2, 4, 3}, at::kFloat, d), filled({2, 4}, at::kDouble, d));
}

Denoised denoised_once(at::Device d) {
  std::mt19937 rng(7);
  return DenoiseProblem(rng, {2, 5, 3, 8, 1, 2, true}).on(d).run();
}

const std::map<std::string, std::vector<Variant>>& runs() {
  static const std::map<std::string, std::vector<Variant>> all = {
      {"rms_norm", {[](auto d, auto t) {
         return rms_norm(filled({2, 3, 8}, t, d), filled({8}, t, d), 1e-5);
       }}},
      {"add_rms_norm", {[](auto d, auto t) {
         at::Tensor residual = filled({2, 3, 8}, t, d);
         return add_rms_norm(residual, filled({2, 3, 8}, t, d), filled({8}, t, d), 1e-5);
       }}},
      {"silu_mul", {[](auto d, auto t) {
         return silu_mul(filled({2, 3, 14}, t, d));
       }}},
      {"gelu", {[](auto d, auto t) {
         return exact_gelu(filled({2, 3, 14}, t, d));
       }}},
      {"norm_heads", {[](auto d, auto t) {
         return norm_heads(filled({2, 3, 14}, t, d), filled({3, 4}, t, d), filled({3, 4}, t, d), 1e-5);
       }}},
      {"pack_linear",
       {[](auto d, auto t) {
          return pack_linear(filled({40, 24}, t, d));
        },
        [](auto d, auto t) {
          return pack_linear(round_linear(filled({40, 70}, t, d), 4));
        }}},
      {"pack_linear_bits", {[](auto d, auto t) {
         return pack_linear_bits(filled({40, 70}, t, d), 4);
       }}},
      {"round_linear",
       {[](auto d, auto t) {
          return round_linear(filled({40, 23}, t, d), 8);
        },
        [](auto d, auto t) {
          return round_linear(filled({40, 70}, t, d), 4);
        }}},
      {"pack_linear_int8", {[](auto d, auto t) {
         return pack_linear_int8(filled({40, 23}, t, d));
       }}},
      {"linear",
       {[](auto d, auto t) {
          return linear(filled({2, 3, 24}, t, d), filled({40, 24}, t, d), 40);
        },
        [](auto d, auto t) {
          return linear(filled({2, 3, 24}, t, d), pack_linear(filled({40, 24}, t, d)), 40);
        },
        [](auto d, auto t) {
          return linear(filled({24}, t, d), pack_linear(filled({40, 24}, t, d)), 40);
        },
        [](auto d, auto t) {
          return linear(filled({2, 23}, at::kBFloat16, d), pack_linear_int8(filled({40, 23}, t, d)), 40);
        },
        [](auto d, auto t) {
          const at::Tensor rounded = round_linear(filled({40, 70}, t, d), 4);
          return linear(filled({2, 70}, at::kBFloat16, d), pack_linear(rounded), 40);
        }}},
      {"add_linear", {[](auto d, auto t) {
         at::Tensor residual = filled({2, 3, 40}, t, d);
         add_linear(residual, filled({2, 3, 24}, t, d), filled({40, 24}, t, d));
         return residual;
       }}},
      {"norm_linear",
       {[](auto d, auto t) {
          return norm_linear(filled({2, 3, 24}, t, d), filled({24}, t, d), 1e-5, filled({40, 24}, t, d), 40,
                             false);
        },
        [](auto d, auto t) {
          return norm_linear(filled({2, 24}, t, d), filled({24}, t, d), 1e-5,
                             pack_linear(filled({40, 24}, t, d)), 40, true);
        }}},
      {"attend", {attend_once}},
      {"compact_cache", {[](auto d, auto t) {
         at::Tensor cache = filled({2, 2, 4, 3, 9, 8}, t, d);
         ops::compact_cache(cache, filled({4}, at::kLong, d, 2), filled({2, 5}, at::kLong, d, 0),
                            filled({2}, at::kLong, d, 0));
         return cache;
       }}},
      {"tree_rows",
       {[](auto d, auto) { return std::get<0>(rows_once(d)); },
        [](auto d, auto) { return std::get<1>(rows_once(d)); }}},
      {"commit_tokens", {[](auto d, auto) {
         std::mt19937 rng(5);
         CommitCase cycle = commit_case(rng, 2, 2, 3, true, 2).copy(d);
         cycle.commit();
         return cycle.state.codes;
       }}},
      {"ar_step", {[](auto d, auto) {
         std::mt19937 rng(7);
         ArStepCase made = ar_step_case(rng, 3, 2, 50).copy(d);
         ops::ar_step(made.step, made.state);
         return made.state.codes;
       }}},
      {"window_step",
       {[](auto d, auto) { return window_step_once(d).rows; },
        [](auto d, auto) { return window_step_once(d).count; }}},
      {"new_tokens", {[](auto d, auto) {
         std::mt19937 rng(6);
         CommitCase cycle = commit_case(rng, 2, 2, 3, true, 2).copy(d);
         cycle.commit();
         return cycle.fresh.ids;
       }}},
      {"uniforms", {[](auto d, auto) {
         return ops::uniforms(filled({3}, at::kLong, d, 1), filled({3}, at::kLong, d, 2), ops::Purpose::token,
                              5);
       }}},
      {"guide_and_filter", {[](auto d, auto t) { return filter_once(d, t).statistics; }}},
      {"probabilities", {[](auto d, auto t) { return ops::probabilities(filter_once(d, t)); }}},
      {"sample",
       {[](auto d, auto) {
          return sample_once(filled({2, 3, 50}, at::kFloat, d), d);
        },
        [](auto d, auto t) { return sample_once(filter_once(d, t), d); }}},
      {"expand_dynamic",
       {[](auto d, auto t) { return std::get<0>(expand_once(filter_once(d, t), d)); },
        [](auto d, auto t) { return std::get<1>(expand_once(filter_once(d, t), d)); },
        [](auto d, auto) {
          return std::get<2>(expand_once(filled({2, 3, 50}, at::kFloat, d), d));
        }}},
      {"rerank_dynamic",
       {[](auto d, auto) { return std::get<0>(rerank_once(d)); },
        [](auto d, auto) { return std::get<1>(rerank_once(d)); },
        [](auto d, auto) { return std::get<2>(rerank_once(d)); },
        [](auto d, auto) { return std::get<3>(rerank_once(d)); },
        [](auto d, auto) { return std::get<4>(rerank_once(d)); }}},
      {"verify_tree",
       {[](auto d, auto) { return verify_once(d).path; }, [](auto d, auto) { return verify_once(d).count; },
        [](auto d, auto) { return verify_once(d).token; }, [](auto d, auto) { return verify_once(d).final; },
        [](auto d, auto) { return verify_once(d).status; }}},
      {"renew_window",
       {[](auto d, auto) { return std::get<0>(renewed_once(d)); },
        [](auto d, auto) { return std::get<1>(renewed_once(d)); }}},
      {"renew_fan",
       {[](auto d, auto) { return std::get<0>(fan_once(d)); },
        [](auto d, auto) { return std::get<1>(fan_once(d)); },
        [](auto d, auto) { return std::get<2>(fan_once(d)); }}},
      {"fill_window", {[](auto d, auto) { return guessed_once(d); }}},
      {"gaussian_log_ratio", {[](auto d, auto) {
         return ops::gaussian_log_ratio(filled({2, 3}, at::kFloat, d), gaussians(d));
       }}},
      {"gaussian_residual",
       {[](auto d, auto) { return std::get<0>(residual_once(d)); },
        [](auto d, auto) { return std::get<1>(residual_once(d)); }}},
      {"denoise",
       {[](auto d, auto) { return denoised_once(d).mean; },
        [](auto d, auto) { return denoised_once(d).deviation; },
        [](auto d, auto) { return denoised_once(d).sums; }}},
      {"draft_children",
       {[](auto d, auto t) { return std::get<0>(drafted_once(d, t)).statistics; },
        [](auto d, auto t) { return std::get<1>(drafted_once(d, t)); }}},
      {"sample_children",
       {[](auto d, auto) {
          return std::get<0>(children_once(filled({2, 3, 50}, at::kFloat, d), d));
        },
        [](auto d, auto t) { return std::get<1>(children_once(filter_once(d, t), d)); }}},
  };
  return all;
}

// Operators without a schema are covered, too.
TEST(Meta, EveryOperatorIsCovered) {
  std::size_t registered = 0;
  for (const auto& name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (name.name.rfind("lamplighter::", 0) != 0) continue;
    ++registered;
    EXPECT_EQ(runs().count(name.name.substr(13)), 1U) << name.name;
  }
  EXPECT_GT(registered, 30U);
}

TEST(Meta, ResultsHaveTheStridesOfTheKernels) {
  for (const auto& [name, variants] : runs()) {
    for (const Variant& run : variants) {
      for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
        SCOPED_TRACE(name + (dtype == at::kFloat ? " fp32" : " bf16"));
        const at::Tensor real = run(at::kCPU, dtype);
        const at::Tensor meta = run(at::kMeta, dtype);
        EXPECT_TRUE(meta.is_meta());
        EXPECT_EQ(meta.sizes(), real.sizes());
        EXPECT_EQ(meta.strides(), real.strides());
        EXPECT_EQ(meta.scalar_type(), real.scalar_type());
      }
    }
  }
}

TEST(Meta, WrongDtypesAreErrors) {
  const at::Tensor x = filled({2, 8}, at::kFloat, at::kMeta);
  EXPECT_THROW(rms_norm(x, filled({8}, at::kBFloat16, at::kMeta), 1e-5), c10::Error);
  EXPECT_THROW(linear(x, filled({4, 8}, at::kBFloat16, at::kMeta), 4), c10::Error);
  EXPECT_THROW(linear(x, filled({1, 12, 16}, at::kChar, at::kMeta), 4), c10::Error);
}

}  // namespace
}  // namespace lamplighter::test
