#include "bundle/synthetic/synthetic.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>

#include <algorithm>
#include <cmath>

#include "bundle/modules/draft_model.h"
#include "bundle/modules/target.h"
#include "bundle/synthetic/modules.h"
#include "draft/drafters/eagle_layer.h"
#include "lamplighter/error.h"
#include "tests/error_of.h"

namespace lamplighter {
namespace {

using ::testing::HasSubstr;

SyntheticShape toy() {
  SyntheticShape shape;
  shape.weight_scale = 2;
  return shape;
}

at::Tensor tokens(std::initializer_list<std::int64_t> ids) {
  return at::tensor(std::vector<std::int64_t>(ids)).unsqueeze(0);
}

// Logits of every position in a causal pass over a one-token prompt and these tokens.
at::Tensor logits_of(const Target& target, const at::Tensor& ids) {
  const c10::InferenceMode inference;
  const std::int64_t length = target.manifest().prompt->length;
  const at::Tensor cache = target.make_cache(1, length + ids.size(1));
  const at::Tensor prompt = at::ones({1, 1, target.manifest().prompt->features});
  const at::Tensor first = target.embed_condition(prompt, at::ones({1, 1}, at::kLong));
  const at::Tensor none = at::empty({0}, at::kLong);
  target.forward(first, at::full({1, 1}, length - 1, at::kLong), none, at::zeros({1}, at::kLong), cache);
  const at::Tensor positions = (length + at::arange(ids.size(1), at::kLong)).unsqueeze(0);
  const Target::Output output =
      target.forward(target.embed(ids), positions, none, at::ones({1}, at::kLong), cache);
  return target.logits(output.hidden);
}

TEST(Synthetic, TargetAndDrafterHaveTheShapesOfTheManifest) {
  const SyntheticBundle bundle = make_synthetic(toy(), {});
  const Target target(bundle.manifest, bundle.target);
  const DraftModel drafter(bundle.manifest.drafters.at("synthetic"), *bundle.drafter);
  const EagleLayer layer(drafter);
  const at::Tensor ids = tokens({1, 5, 7});
  EXPECT_EQ(logits_of(target, ids).sizes(), (std::vector<std::int64_t>{1, 3, 8}));
  const at::Tensor mask = at::ones({2, 3}, at::kLong);
  EXPECT_EQ(target.embed_unconditional(mask).sizes(), (std::vector<std::int64_t>{2, 3, 16}));
  const at::Tensor cache = drafter.make_cache(1, 6);
  EXPECT_EQ(cache.sizes(), (std::vector<std::int64_t>{1, 2, 1, 2, 6, 8}));
  const at::Tensor features = at::ones({1, 3, 16});
  const at::Tensor hidden = layer.forward(layer.embed(ids), features, at::arange(3, at::kLong).unsqueeze(0),
                                          at::empty({0}, at::kLong), at::zeros({1}, at::kLong), cache);
  EXPECT_EQ(layer.logits(hidden).sizes(), (std::vector<std::int64_t>{1, 3, 8}));
}

// With norms of heads and without text features.
TEST(Synthetic, PromptsOfTokens) {
  SyntheticShape shape = toy();
  shape.chameleon = true;
  const SyntheticBundle bundle = make_synthetic(shape, {});
  const Target target(bundle.manifest, bundle.target);
  const DraftModel drafter(bundle.manifest.drafters.at("synthetic"), *bundle.drafter);
  const EagleLayer layer(drafter);
  const at::Tensor positions = at::arange(3, at::kLong).unsqueeze(0), none = at::empty({0}, at::kLong);
  const auto last = [&](const at::Tensor& ids) {
    const c10::InferenceMode inference;
    const at::Tensor cache = target.make_cache(1, 3), drafts = drafter.make_cache(1, 3);
    const at::Tensor start = at::zeros({1}, at::kLong);
    const at::Tensor hidden = target.forward(target.embed(ids), positions, none, start, cache).hidden;
    const at::Tensor drafted = layer.forward(layer.embed(ids), hidden, positions, none, start, drafts);
    return at::cat({target.logits(hidden), layer.logits(drafted)}).select(1, 2);
  };
  const at::Tensor base = last(tokens({1, 5, 7}));
  EXPECT_EQ(base.sizes(), (std::vector<std::int64_t>{2, 8}));
  EXPECT_GT((last(tokens({2, 5, 7})) - base).abs().amin().item<double>(), 0);
}

// Tar's de-tokenizer: rows of features and codes get the learned positions, and nothing turns.
TEST(Synthetic, LearnedPositions) {
  SyntheticShape shape = toy();
  shape.learned_positions = true;
  const SyntheticBundle bundle = make_synthetic(shape, {});
  const Target target(bundle.manifest, bundle.target);
  const at::Tensor base = logits_of(target, tokens({1, 5, 7}));
  EXPECT_EQ(base.sizes(), (std::vector<std::int64_t>{1, 3, 8}));
  EXPECT_GT((logits_of(target, tokens({5, 1, 7})) - base).select(1, 2).abs().max().item<double>(), 0.05);
  const at::Tensor mask = at::ones({2, 3}, at::kLong);
  EXPECT_TRUE(at::equal(target.embed_unconditional(mask), at::zeros({2, 3, 16})));
  // One product, its bias and learned positions, where the toy has two products and the null caption.
  EXPECT_EQ(weight_bytes(shape, at::kFloat) - weight_bytes(toy(), at::kFloat),
            4 * (16 * (8 + 1 + 3 + 4 - 1) - (16 + 3) * 8 - 16 * 16));
}

// Without norms of heads, with fewer key heads than query heads; with norms behind the branches and without.
TEST(Synthetic, BiasesOfQueriesKeysAndValues) {
  std::vector<at::Tensor> found;
  for (const bool branch_norms : {false, true}) {
    SyntheticShape shape = toy();
    shape.chameleon = shape.qkv_bias = true;
    shape.branch_norms = branch_norms;
    shape.kv_heads = 1;
    const SyntheticBundle bundle = make_synthetic(shape, {});
    const Target target(bundle.manifest, bundle.target);
    const c10::InferenceMode inference;
    const auto logits = [&](const at::Tensor& ids) {
      const at::Tensor positions = at::arange(3, at::kLong).unsqueeze(0);
      return target.logits(target
                               .forward(target.embed(ids), positions, at::empty({0}, at::kLong),
                                        at::zeros({1}, at::kLong), target.make_cache(1, 3))
                               .hidden);
    };
    const at::Tensor base = logits(tokens({1, 5, 7}));
    EXPECT_EQ(base.sizes(), (std::vector<std::int64_t>{1, 3, 8}));
    EXPECT_GT((logits(tokens({2, 5, 7})) - base).select(1, 2).abs().amin().item<double>(), 0);
    // Two layers: 32 x 16 for queries, keys and values, 16 x 16 after attention; and the head.
    EXPECT_EQ(bundle.target_bytes, 4 * (2 * (32 * 16 + 16 * 16 + 64 * 16 + 16 * 32) + 16 * 16));
    found.push_back(base);
  }
  EXPECT_GT((found[0] - found[1]).abs().amin().item<double>(), 0);
}

// Heads that together are wider than the network, with norms and without.
TEST(Synthetic, NormsOfWideHeads) {
  std::vector<at::Tensor> found;
  for (const bool head_rms : {false, true}) {
    SyntheticShape shape = toy();
    shape.chameleon = shape.llama = true;
    shape.head_rms = head_rms;
    shape.head_dim = 16;
    const SyntheticBundle bundle = make_synthetic(shape, {});
    const Target target(bundle.manifest, bundle.target);
    const c10::InferenceMode inference;
    const at::Tensor positions = at::arange(3, at::kLong).unsqueeze(0);
    const at::Tensor hidden =
        target
            .forward(target.embed(tokens({1, 5, 7})), positions, at::empty({0}, at::kLong),
                     at::zeros({1}, at::kLong), target.make_cache(1, 3))
            .hidden;
    found.push_back(target.logits(hidden));
    // Two layers: 96 x 16 for queries, keys and values, 16 x 32 after attention; and the head.
    EXPECT_EQ(bundle.target_bytes, 4 * (2 * (96 * 16 + 16 * 32 + 64 * 16 + 16 * 32) + 16 * 16));
  }
  EXPECT_EQ(found[1].sizes(), (std::vector<std::int64_t>{1, 3, 8}));
  // The first position reads itself alone, whatever its query.
  EXPECT_TRUE(at::allclose(found[0].select(1, 0), found[1].select(1, 0)));
  EXPECT_GT((found[0] - found[1]).select(1, 2).abs().amin().item<double>(), 0);
}

// A head with two layers and biases, computed with plain operators.
TEST(Synthetic, HeadsOfTwoLayers) {
  SyntheticShape shape = toy();
  shape.chameleon = true;
  shape.head_width = 24;
  const SyntheticBundle bundle = make_synthetic(shape, {});
  const Target target(bundle.manifest, bundle.target);
  const c10::InferenceMode inference;
  const at::Tensor rows = target.embed(tokens({1, 5, 7}));
  const at::Tensor logits = target.logits(rows);
  EXPECT_EQ(logits.sizes(), (std::vector<std::int64_t>{1, 3, 8}));
  EXPECT_FALSE(at::allclose(target.logits(rows * 2), logits * 2, 0.01, 0.01));
  // Packed in blocks of 16 features: 24 x 16 and 8 x 24 for the head, plus two layers of plain blocks.
  EXPECT_EQ(bundle.target_bytes, 4 * (2 * (64 * 16 + 64 * 16 + 16 * 32) + 32 * 16 + 16 * 24));
  const DraftModel drafter(bundle.manifest.drafters.at("synthetic"), *bundle.drafter);
  const EagleLayer layer(drafter);
  EXPECT_TRUE(at::equal(layer.logits(rows), logits)) << "it shares the head";
}

// Otherwise lossless tests on these modules would pass for engines that mix up contexts.
TEST(Synthetic, EveryEarlierTokenAndThePositionMatter) {
  const SyntheticBundle bundle = make_synthetic(toy(), {});
  const Target target(bundle.manifest, bundle.target);
  const at::Tensor base = logits_of(target, tokens({1, 5, 7})).select(1, 2);
  for (const auto& changed : {tokens({2, 5, 7}), tokens({1, 4, 7}), tokens({1, 5, 6}), tokens({5, 1, 7})}) {
    const at::Tensor other = logits_of(target, changed).select(1, 2);
    EXPECT_GT((other - base).abs().max().item<double>(), 0.05) << changed;
  }
}

TEST(Synthetic, SeedsGiveWeights) {
  SyntheticShape shape = toy();
  const at::Tensor ids = tokens({1, 5, 7});
  const auto run = [&] {
    const SyntheticBundle bundle = make_synthetic(shape, {});
    return logits_of(Target(bundle.manifest, bundle.target), ids);
  };
  const at::Tensor first = run();
  EXPECT_TRUE(at::equal(first, run()));
  shape.seed = 2;
  EXPECT_FALSE(at::allclose(first, run(), 0.01, 0.01));
}

TEST(Synthetic, WeightsAreMadeInTheStorageType) {
  Placement placement;
  placement.dtype = at::kBFloat16;
  const SyntheticBundle bundle = make_synthetic(toy(), placement);
  const Target target(bundle.manifest, bundle.target);
  EXPECT_EQ(target.embed(tokens({0})).scalar_type(), at::kBFloat16);
  EXPECT_EQ(bundle.manifest.modules.at("target").dtype, "bfloat16");
  // Packed in blocks of 16 features: two layers with (48 + 16) x 16, 64 x 16 and 16 x 32 weights, and a head
  // of 8 x 16.
  EXPECT_EQ(bundle.target_bytes, 2 * (2 * (64 * 16 + 64 * 16 + 16 * 32) + 16 * 16));
  // int8 with a scale per feature and inputs padded to groups of 64: fc and w2 16 x 32, (48 + 16 + 64) x 16,
  // head 8 x 16.
  EXPECT_EQ(bundle.drafter_bytes, (16 + 16 + 48 + 16 + 64 + 16) * (64 + 4));
}

// Weights of more numbers than the block that they repeat, and of fewer.
TEST(Synthetic, ProgressAndDeviationOfLargeWeights) {
  SyntheticShape shape;
  shape.hidden = 1024;
  shape.ffn = 1024;
  std::vector<std::int64_t> heard;
  const std::int64_t expected = weight_bytes(shape, at::kFloat);
  const SyntheticModules modules = make_modules(shape, {}, [&](std::int64_t bytes, std::int64_t all) {
    heard.push_back(bytes);
    EXPECT_EQ(all, expected);
  });
  ASSERT_GT(heard.size(), 10U);
  EXPECT_TRUE(std::is_sorted(heard.begin(), heard.end()));
  EXPECT_GT(heard.front(), 0);
  EXPECT_EQ(heard.back(), expected);
  const c10::IValue layers = modules.target.attr("layers");
  const torch::jit::Module layer(layers.toTupleRef().elements()[0].toObject());
  for (const char* name : {"w13", "wo"}) {
    const at::Tensor weight = layer.attr(name).toTensor();
    const double inputs = static_cast<double>(weight.size(1));
    EXPECT_NEAR(weight.std().item<double>() * std::sqrt(inputs), 1, 0.02) << name;
    EXPECT_NEAR(weight.mean().item<double>(), 0, 0.01) << name;
  }
  const at::Tensor large = layer.attr("w13").toTensor();
  EXPECT_GT(large.numel(), (1 << 20) + 7);
  EXPECT_FALSE(at::equal(large.select(0, 0), large.select(0, 1)));
}

TEST(Synthetic, WeightBytesAreThoseOfTheModules) {
  for (const bool chameleon : {false, true}) {
    SyntheticShape shape = toy();
    shape.chameleon = chameleon;
    // Blocks of (48 + 16) x 16, 64 x 16 and 16 x 32, embeddings and heads of 8 x 16, the draft model's fc;
    // with text features (16 + 3) x 8 and 16 x 16.
    const std::int64_t block = 64 * 16 + 64 * 16 + 16 * 32, numbers = 3 * block + 4 * 8 * 16 + 16 * 32;
    EXPECT_EQ(weight_bytes(shape, at::kFloat), 4 * (numbers + (chameleon ? 0 : 19 * 8 + 16 * 16)));
    if (!chameleon) continue;
    shape.qkv_bias = true;  // 48 more numbers in each of three blocks
    EXPECT_EQ(weight_bytes(shape, at::kFloat), 4 * (numbers + 3 * 48));
    shape.qkv_bias = false;
    shape.head_width = 24;  // replaces two heads of 8 x 16; the draft model shares the target's
    const std::int64_t more = 24 * 17 + 8 * 25 - 8 * 16;
    EXPECT_EQ(weight_bytes(shape, at::kFloat), 4 * (numbers + 2 * more));
  }
}

// Published parameters per block: 12,847,104 for GPT-L, 20,318,720 for GPT-XL, norms included.
TEST(Synthetic, PublishedShapes) {
  const auto block = [](const SyntheticShape& s) {
    const std::int64_t width = s.heads * s.head_dim, kv = s.kv_heads * s.head_dim;
    return s.hidden * (2 * width + 2 * kv) + 3 * s.hidden * s.ffn + 2 * s.hidden;
  };
  EXPECT_EQ(block(synthetic_shape("llamagen-l-256")), 12847104);
  EXPECT_EQ(synthetic_shape("llamagen-l-256").layers, 24);
  EXPECT_EQ(block(synthetic_shape("llamagen-xl-512")), 20318720);
  EXPECT_EQ(synthetic_shape("llamagen-xl-512").columns, 32);
  // 202,375,168 per block and 268,435,456 for the embedding, of 7,013,158,912 in total.
  const SyntheticShape anole = synthetic_shape("anole-512"), lumina = synthetic_shape("lumina-768");
  EXPECT_EQ(block(anole) - 2 * anole.hidden, 202375168);
  EXPECT_EQ(anole.hidden * anole.embedding, 268435456);
  EXPECT_EQ(anole.layers, 32);
  EXPECT_EQ(lumina.columns, 48);
  EXPECT_TRUE(lumina.row_ends && !anole.row_ends);
  const SyntheticShape lumina2 = synthetic_shape("lumina2-768");
  EXPECT_EQ(block(lumina2), block(lumina));
  EXPECT_EQ(lumina2.hidden * lumina2.embedding, 701992960);
  EXPECT_EQ(lumina2.rows * lumina2.columns, 9216);
  EXPECT_EQ(lumina2.first_image_id + lumina2.vocabulary, 171384);
  const SyntheticShape janus = synthetic_shape("janus-pro-7b");
  EXPECT_EQ(janus.hidden, 4096);
  EXPECT_EQ(janus.layers, 30);
  EXPECT_EQ(janus.rows * janus.columns, 576);
  const SyntheticShape simplear = synthetic_shape("simplear-0.5b-1024");
  EXPECT_EQ(simplear.heads * simplear.head_dim, simplear.hidden);
  EXPECT_EQ(simplear.rows * simplear.columns, 4096);
  const SyntheticShape emu3 = synthetic_shape("emu3-720");
  EXPECT_FALSE(emu3.has_head_norms());
  EXPECT_EQ(emu3.rows * emu3.columns, 8100);
  EXPECT_EQ(emu3.row_end() + 1, emu3.embedding);
  const SyntheticShape emu35 = synthetic_shape("emu3.5-1168");
  EXPECT_EQ(emu35.heads * emu35.head_dim, 8192);  // more than 5,120
  EXPECT_EQ(block(emu35) - 2 * emu35.hidden, 487587840);
  EXPECT_EQ(emu35.rows * emu35.columns, 4015);
  EXPECT_EQ(emu35.row_end() + 1, emu35.embedding);
  const SyntheticShape glm = synthetic_shape("glm-image-1024");
  EXPECT_EQ(glm.grid().preview_tokens(), 256);
  EXPECT_EQ(glm.grid().tokens(), 1280);
  EXPECT_FALSE(glm.has_head_norms());
  const SyntheticShape tar = synthetic_shape("tar-1.5b-378");
  EXPECT_EQ(block(tar) - 2 * tar.hidden, 46792704);
  EXPECT_EQ(tar.row_end(), tar.embedding);
  const SyntheticShape larger = synthetic_shape("tar-7b-378");
  EXPECT_EQ(block(larger) - 2 * larger.hidden, 233046016);
  const SyntheticShape detokenizer = synthetic_shape("tar-decoder-512");
  EXPECT_EQ(block(detokenizer), 20318720);  // as GPT-XL
  EXPECT_EQ(detokenizer.places(), 729 + 1024 - 1);
  EXPECT_EQ(synthetic_shape("tar-decoder-1024").rows, 64);
  EXPECT_EQ(synthetic_shape("anole-512", 2).layers, 2);
  EXPECT_EQ(synthetic_shape("anole-512", 2).name, "anole-512 with 2 of 32 layers");
  EXPECT_THROW(synthetic_shape("anole-512", 0), Error);
  EXPECT_THROW(synthetic_shape("anole-512", 33), Error);
  EXPECT_THAT(error_of(ExitCode::usage, [&] { synthetic_shape("llamagen"); }),
              HasSubstr("llamagen-l-256, llamagen-xl-256"));
}

}  // namespace
}  // namespace lamplighter
