#include "bundle/synthetic_script.h"

#include <cmath>
#include <cstdio>
#include <map>

namespace lamplighter {
namespace {

using Words = std::map<std::string, std::string>;

// The text with every {word} replaced.
std::string filled(std::string text, const Words& words) {
  for (const auto& [name, value] : words) {
    const std::string mark = "{" + name + "}";
    for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at)) {
      text.replace(at, mark.size(), value);
    }
  }
  return text;
}

Words sizes(const SyntheticShape& shape) {
  char scale[32];
  std::snprintf(scale, sizeof scale, "%.17g", 1 / std::sqrt(static_cast<double>(shape.head_dim)));
  const auto text = [](std::int64_t value) { return std::to_string(value); };
  return {{"hidden", text(shape.hidden)},
          {"vocabulary", text(shape.vocabulary)},
          {"heads", text(shape.heads)},
          {"kv_heads", text(shape.kv_heads)},
          {"qkv", text((shape.heads + 2 * shape.kv_heads) * shape.head_dim)},
          {"head_dim", text(shape.head_dim)},
          {"gate_up", text(2 * shape.ffn)},
          {"length", text(shape.prompt_length)},
          {"last_row", text(shape.prompt_length - 1)},
          {"scale", scale}};
}

// Attention and feed-forward parts of layer {i}; h holds the normed rows, x the residual stream.
constexpr const char* kQkv = R"(
    h = ops.linear(h, self.wqkv_{i}, {qkv}))";

constexpr const char* kNormedHeads = R"(
    ops.norm_heads(h, self.qk_weight_{i}, self.qk_bias_{i}, {eps}))";

constexpr const char* kAttention = R"(
    h = ops.attend(h, cache, {i}, positions, lengths, tree_mask, self.rotary, {heads}, {kv_heads}, {scale})
    h = ops.linear(h, self.wo_{i}, {hidden})
    h = ops.add_rms_norm(x, h, self.ffn_norm_{i}, {eps})
    h = ops.linear(h, self.w13_{i}, {gate_up})
    h = ops.silu_mul(h)
    h = ops.linear(h, self.w2_{i}, {hidden}))";

constexpr const char* kPrepareNormedHeads = R"(
    self.qk_weight_{i} = self.qk_weight_{i}.to(like)
    self.qk_bias_{i} = self.qk_bias_{i}.to(like))";

constexpr const char* kPrepareLayer = R"(
    self.wqkv_{i} = {pack}(self.wqkv_{i}.to(like))
    self.wo_{i} = {pack}(self.wo_{i}.to(like))
    self.w13_{i} = {pack}(self.w13_{i}.to(like))
    self.w2_{i} = {pack}(self.w2_{i}.to(like))
    self.ffn_norm_{i} = self.ffn_norm_{i}.to(like))";

constexpr const char* kEnds = R"(
def embed(self, ids):
    return torch.embedding(self.embedding, ids)

def logits(self, hidden):
    return ops.linear(hidden, self.head, {vocabulary})
)";

constexpr const char* kPrepareEnds = R"(
    self.embedding = self.embedding.to(like)
    self.head = {pack}(self.head.to(like))
    self.rotary = self.rotary.to(like.device))";

constexpr const char* kPrepareCondition = R"(
    self.fc1 = ops.pack_linear(self.fc1.to(like))
    self.fc2 = ops.pack_linear(self.fc2.to(like))
    self.null_features = self.null_features.to(like))";

constexpr const char* kCondition = R"(
def project(self, features):
    h = ops.linear(features, self.fc1, {hidden})
    return ops.linear(torch.gelu(h, approximate="tanh"), self.fc2, {hidden})

def embed_condition(self, features, mask):
    features = features.to(self.null_features)
    return self.project((features * mask.to(features).unsqueeze(-1)).contiguous())

def embed_unconditional(self, mask):
    columns = torch.arange(mask.size(1), device=mask.device)
    rows = {length} - mask.sum([1], keepdim=True) + columns
    features = torch.embedding(self.null_features, rows.clamp(0, {last_row}))
    return self.project((features * mask.to(features).unsqueeze(-1)).contiguous())
)";

std::string block_of(const SyntheticShape& shape) {
  return std::string(kQkv) + (shape.chameleon ? kNormedHeads : "") + kAttention;
}

std::string prepare_block_of(const SyntheticShape& shape) {
  return std::string(kPrepareLayer) + (shape.chameleon ? kPrepareNormedHeads : "");
}

}  // namespace

std::string target_script(const SyntheticShape& shape) {
  Words words = sizes(shape);
  words["eps"] = "1e-5";
  words["pack"] = "ops.pack_linear";
  std::string forward = R"(
def forward(self, rows, positions, tree_mask, lengths, cache):
    x = rows.clone()
    h = ops.rms_norm(rows, self.first_norm, {eps}))";
  std::string prepare = "\ndef prepare(self, like: Tensor) -> None:";
  for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
    const Words index{{"i", std::to_string(layer)}};
    forward += filled(block_of(shape) + R"(
    h = ops.add_rms_norm(x, h, self.next_norm_{i}, {eps}))",
                      index);
    prepare += filled(prepare_block_of(shape) + R"(
    self.next_norm_{i} = self.next_norm_{i}.to(like))",
                      index);
  }
  forward += "\n    return h, h\n";
  prepare += std::string(kPrepareEnds) + R"(
    self.first_norm = self.first_norm.to(like))" +
             (shape.chameleon ? "\n" : std::string(kPrepareCondition) + "\n");
  return filled(kEnds + std::string(shape.chameleon ? "" : kCondition) + forward + prepare, words);
}

std::string drafter_script(const SyntheticShape& shape, bool int8_weights) {
  Words words = sizes(shape);
  words["eps"] = "1e-6";
  words["pack"] = int8_weights ? "ops.pack_linear_int8" : "ops.pack_linear";
  words["i"] = "0";
  const std::string forward = std::string(R"(
def forward(self, embeddings, features, positions, tree_mask, lengths, cache):
    x = ops.linear(torch.cat([embeddings, features], -1), self.fc, {hidden}) + self.bias
    h = x)") + block_of(shape) +
                              "\n    return x + h\n";
  const std::string prepare =
      std::string("\ndef prepare(self, like: Tensor) -> None:") + prepare_block_of(shape) + kPrepareEnds + R"(
    self.fc = {pack}(self.fc.to(like))
    self.bias = self.bias.to(like)
)";
  return filled(kEnds + forward + prepare, words);
}

}  // namespace lamplighter
