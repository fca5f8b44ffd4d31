#pragma once

#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/frontend/resolver.h>
#include <torch/csrc/jit/frontend/sugared_value.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "draft/drafters/flash.h"
#include "draft/drafters/medusa.h"
#include "draft/drafters/mlp.h"
#include "draft/windows/refine.h"
#include "tests/decode/loop_distribution.h"
#include "tests/decode/toy_methods.h"

// Drafters of all kinds with random weights.
namespace lamplighter::test {

constexpr std::int64_t kHeads = 3;

// Networks of random weights: heads of one product each, or steps that know the tokens before.
constexpr const char* kMedusa = R"(
    def heads(self, hidden):
        return torch.matmul(hidden.unsqueeze(1), self.weight).squeeze(2)
  )";
constexpr const char* kMlp = R"(
    def step(self, state, ids, number):
        return torch.tanh(torch.matmul(state, self.projection) + torch.embedding(self.embedding, ids))
    def logits(self, state, number):
        return torch.matmul(state, self.weight[int(number)])
  )";

// A layer of attention over features of the target, or of its own.
constexpr const char* kLayer = R"(
    def embed(self, ids):
        return torch.embedding(self.embedding, ids)
    def attend(self, x, positions, tree_mask, lengths, cache):
        x = torch.matmul(x, self.attention)
        return lamplighter.attend(x, cache, 0, positions, lengths, tree_mask, self.rotary, 1, 1, 0.5)
    def forward(self, embeddings, features, positions, tree_mask, lengths, cache):
        own = features.size(2) == embeddings.size(2)
        x = embeddings + (features if own else torch.matmul(features, self.inner))
        return self.attend(x, positions, tree_mask, lengths, cache)
    def logits(self, hidden):
        return torch.matmul(hidden, self.weight[0])
    def heads(self, hidden):
        return torch.matmul(hidden.unsqueeze(1), self.weight).squeeze(2)
    def compress(self, features, last):
        row = torch.arange(features.size(1))
        seen = (row >= 1).logical_and(row <= last.unsqueeze(1)).to(features.dtype).unsqueeze(2)
        mean = (features * seen).sum(1, True) / seen.sum(1, True).clamp_min(1)
        return torch.cat([mean, mean.neg()], 1)
    def forward_compressed(self, embeddings, features, compressed, positions, tree_mask, lengths, cache):
        x = torch.cat([embeddings + features, compressed], 1)
        return self.attend(x, positions, tree_mask, lengths, cache)
  )";

// A network that corrects rows of the target.
constexpr const char* kRefine = R"(
    def read(self, hidden, stale):
        x = torch.matmul(hidden, self.projection)
        x = x + torch.embedding(self.embedding, stale.clamp_min(0)) * (stale >= 0).unsqueeze(2)
        return torch.cat([x, x], 2)
    def step(self, read, state, tokens):
        x = torch.narrow(read, 2, 0, state.size(2)) + state + torch.embedding(self.embedding, tokens)
        return torch.tanh(x)
    def logits(self, state):
        return torch.matmul(state, self.weight[0])
  )";

// The names that the codes above use.
struct Operators : torch::jit::Resolver {
  std::shared_ptr<torch::jit::SugaredValue> resolveValue(const std::string& name, torch::jit::GraphFunction&,
                                                         const torch::jit::SourceRange&) override {
    if (name == "torch") return std::make_shared<torch::jit::BuiltinModule>("aten");
    if (name == "lamplighter") return std::make_shared<torch::jit::BuiltinModule>("lamplighter");
    return nullptr;
  }
};

// What a kind of drafter is in these tests: how it drafts, its code and the methods that are called.
struct Kind {
  MakeDraftMethod draft_method;
  const char* code;
  std::vector<std::string> methods;
  std::int64_t queries = 0;
};

inline const std::map<std::string, Kind>& kinds() {
  static const std::map<std::string, Kind> all{
      {"medusa", {&make_medusa, kMedusa, {"heads"}}},
      {"mlp", {&make_mlp, kMlp, {"step", "logits"}}},
      {"flash", {&make_flash, kLayer, {"embed", "forward", "heads"}}},
      {"flash_compressed",
       {&make_flash, kLayer, {"embed", "forward", "heads", "compress", "forward_compressed"}, 2}},
      {"eagle_3", {&make_eagle, kLayer, {"embed", "forward", "logits"}}},
      {"refine", {&make_refine, kRefine, {"read", "step", "logits"}}}};
  return all;
}

// window: of a drafter that compresses what is older.
inline DraftModel random_drafter(const Target& target, const std::string& name, std::int64_t window) {
  const Manifest& manifest = target.manifest();
  const Kind& kind = kinds().at(name);
  const std::int64_t width = manifest.target.hidden, positions = manifest.cache.max_length + 16;
  DraftModelEntry entry;
  entry.kind = name.substr(0, name.find('_'));
  entry.heads = kHeads;
  entry.layers = entry.kv_heads = 1;
  entry.head_dim = width;
  entry.max_length = positions;
  entry.queries = kind.queries;
  entry.window = window;
  if (manifest.prompt->kind != "tokens") entry.prompt_id = 0;
  if (name == "eagle_3") entry.kind = "eagle-3", entry.feature_layers = {0, manifest.cache.layers - 1};
  if (manifest.cache.layers == 1)
    entry.feature_layers.resize(std::min<std::size_t>(1, entry.feature_layers.size()));
  std::mt19937 rng(7);
  const auto random = [&](const std::vector<std::int64_t>& sizes) {
    return 0.3 * random_tensor(rng, sizes, at::kFloat);
  };
  torch::jit::Module module("drafter");
  module.register_buffer("weight", random({kHeads, width, manifest.target.head}));
  module.register_buffer("projection", random({width, width}));
  module.register_buffer("embedding", random({manifest.tokens.vocabulary, width}));
  module.register_buffer("attention", random({width, 3 * width}));
  module.register_buffer("inner", random({2 * width, width}));
  module.register_buffer("rotary", random({positions, width / 2, 2}));
  module.define(kind.code, std::make_shared<Operators>());
  return {entry, Module(module, "drafter", kind.methods, target.placement())};
}

inline Method heads_method(const std::string& kind, Tree tree, const std::string& rule = "exact",
                           bool top = false) {
  Method method = static_method(std::move(tree), rule, top);
  method.draft_method = kinds().at(kind).draft_method;
  return method;
}

struct Guessed {
  Guessed(const SyntheticShape& shape, const std::string& kind, std::int64_t window = 1)
      : toy(shape), drafter(random_drafter(toy.target, kind, window)) {}
  Models models() const { return {&toy.target, &drafter}; }

  Toy toy;
  DraftModel drafter;
};

}  // namespace lamplighter::test
