#include "bundle/synthetic.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/frontend/resolver.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "bundle/machine.h"
#include "bundle/synthetic_script.h"
#include "lamplighter/error.h"

namespace lamplighter {
namespace {

constexpr const char* kDrafter = "synthetic";
constexpr int kDownsample = 16;

// Knows `torch` and, as `ops`, the operators of this library.
struct Names : torch::jit::Resolver {
  std::shared_ptr<torch::jit::SugaredValue> resolveValue(const std::string& name, torch::jit::GraphFunction&,
                                                         const torch::jit::SourceRange&) override {
    if (name == "torch") return std::make_shared<torch::jit::BuiltinModule>("aten");
    if (name == "ops") return std::make_shared<torch::jit::BuiltinModule>("lamplighter");
    return nullptr;
  }
};

// Normal numbers in the storage dtype: one block, taken piece by piece and over again. 2^20 + 7 numbers: rows
// of the usual widths never start at the same place of it.
class Weights {
 public:
  Weights(const SyntheticShape& shape, const Placement& placement)
      : scale_(shape.weight_scale), options_(at::dtype(placement.dtype).device(placement.device)) {
    at::Generator generator = at::detail::createCPUGenerator(shape.seed);
    block_ = at::randn({(1 << 20) + 7}, generator, at::kFloat).to(options_);
  }

  // Deviation scale / sqrt(inputs): every product keeps the size of its input, times the scale.
  at::Tensor matrix(std::int64_t outputs, std::int64_t inputs) {
    return normal({outputs, inputs}, scale_ / std::sqrt(static_cast<double>(inputs)));
  }
  at::Tensor table(std::int64_t rows, std::int64_t width) { return normal({rows, width}, 1); }
  at::Tensor ones(std::int64_t width) const { return at::ones({width}, options_); }
  at::Tensor zeros(std::int64_t width) const { return at::zeros({width}, options_); }

 private:
  at::Tensor normal(at::IntArrayRef shape, double deviation) {
    at::Tensor result = at::empty(shape, options_);
    at::Tensor flat = result.view({-1});
    for (std::int64_t done = 0; done < flat.numel();) {
      const std::int64_t count = std::min(flat.numel() - done, block_.numel() - next_);
      flat.narrow(0, done, count).copy_(block_.narrow(0, next_, count)).mul_(deviation);
      done += count;
      next_ = (next_ + count) % block_.numel();
    }
    return result;
  }

  double scale_;
  at::TensorOptions options_;
  at::Tensor block_;
  std::int64_t next_ = 0;
};

std::int64_t row_end(const SyntheticShape& shape) {
  return shape.first_image_id + shape.vocabulary;
}

// Ids of the embedding.
std::int64_t ids(const SyntheticShape& shape) {
  return shape.embedding > 0 ? shape.embedding : row_end(shape) + (shape.row_ends ? 1 : 0);
}

Grid grid_of(const SyntheticShape& shape) {
  Grid grid;
  grid.rows = shape.rows;
  grid.columns = shape.columns;
  grid.width = shape.columns * kDownsample;
  grid.height = shape.rows * kDownsample;
  if (shape.row_ends) grid.row_end = {row_end(shape)};
  return grid;
}

// Angles of the Chameleon family: every pair turns with the position.
at::Tensor line_table(const SyntheticShape& shape) {
  const std::int64_t half = shape.head_dim / 2;
  const at::Tensor theta =
      at::pow(10000.0, at::arange(half, at::kFloat) * (-1.0 / static_cast<double>(half)));
  const at::Tensor position = at::arange(shape.prompt_length + grid_of(shape).length(), at::kFloat);
  const at::Tensor angles = position.unsqueeze(1) * theta;
  return at::stack({angles.cos(), angles.sin()}, -1);
}

// LlamaGen's rotations [prefix + rows * columns + after, head_dim / 2, 2] as (cos, sin): half of the pairs
// turn with the row, half with the column of a cell; rows of the prompt and past the picture are zero.
at::Tensor rotary_table(const SyntheticShape& shape, std::int64_t prefix, std::int64_t after) {
  const std::int64_t half = shape.head_dim / 2, quarter = half / 2;
  const at::Tensor theta =
      at::pow(10000.0, at::arange(quarter, at::kFloat) * (-2.0 / static_cast<double>(half)));
  const int columns = shape.columns + (shape.row_ends ? 1 : 0);
  const at::Tensor row = at::arange(shape.rows, at::kFloat).repeat_interleave(columns);
  const at::Tensor column = at::arange(columns, at::kFloat).repeat({shape.rows});
  const at::Tensor angles = at::cat({row.unsqueeze(1) * theta, column.unsqueeze(1) * theta}, 1);
  const at::Tensor cells = at::stack({angles.cos(), angles.sin()}, -1);
  return at::cat({at::zeros({prefix, half, 2}), cells, at::zeros({after, half, 2})});
}

std::int64_t bytes_of(const torch::jit::Module& module, const std::vector<std::string>& read) {
  std::int64_t bytes = 0;
  for (const auto& buffer : module.named_buffers(/*recurse=*/false)) {
    const bool counts = std::any_of(read.begin(), read.end(), [&](const std::string& name) {
      return buffer.name == name || buffer.name.rfind(name + "_", 0) == 0;
    });
    if (counts) bytes += static_cast<std::int64_t>(buffer.value.nbytes());
  }
  return bytes;
}

void add_layer(torch::jit::Module& module, const SyntheticShape& shape, Weights& weights,
               std::int64_t layer) {
  const auto add = [&](const char* name, const at::Tensor& tensor) {
    module.register_buffer(name + ("_" + std::to_string(layer)), tensor);
  };
  const std::int64_t width = shape.heads * shape.head_dim;
  add("wqkv", weights.matrix(width + 2 * shape.kv_heads * shape.head_dim, shape.hidden));
  add("wo", weights.matrix(shape.hidden, width));
  add("w13", weights.matrix(2 * shape.ffn, shape.hidden));
  add("w2", weights.matrix(shape.hidden, shape.ffn));
  add("ffn_norm", weights.ones(shape.hidden));
  if (!shape.chameleon) return;
  const std::int64_t normed = (shape.heads + shape.kv_heads) * shape.head_dim;
  add("qk_weight", weights.ones(normed).view({-1, shape.head_dim}));
  add("qk_bias", weights.zeros(normed).view({-1, shape.head_dim}));
}

torch::jit::Module make_target(const SyntheticShape& shape, Weights& weights) {
  torch::jit::Module module("SyntheticTarget");
  for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
    add_layer(module, shape, weights, layer);
    module.register_buffer("next_norm_" + std::to_string(layer), weights.ones(shape.hidden));
  }
  module.register_buffer("first_norm", weights.ones(shape.hidden));
  module.register_buffer("embedding", weights.table(ids(shape), shape.hidden));
  module.register_buffer("head", weights.matrix(shape.vocabulary, shape.hidden));
  if (!shape.chameleon) {
    module.register_buffer("fc1", weights.matrix(shape.hidden, shape.prompt_features));
    module.register_buffer("fc2", weights.matrix(shape.hidden, shape.hidden));
    module.register_buffer("null_features", weights.table(shape.prompt_length, shape.prompt_features));
  }
  module.register_buffer("rotary",
                         shape.chameleon ? line_table(shape) : rotary_table(shape, shape.prompt_length, 0));
  module.define(target_script(shape), std::make_shared<Names>());
  return module;
}

// Row p of a LlamaGen drafter's rotations belongs to the token at p + 1.
torch::jit::Module make_drafter(const SyntheticShape& shape, Weights& weights, const at::Tensor& head) {
  torch::jit::Module module("SyntheticDrafter");
  add_layer(module, shape, weights, 0);
  module.register_buffer("embedding", weights.table(ids(shape), shape.hidden));
  module.register_buffer("fc", weights.matrix(shape.hidden, 2 * shape.hidden));
  module.register_buffer("bias", weights.zeros(shape.hidden));
  module.register_buffer("head", head.clone());
  module.register_buffer(
      "rotary", shape.chameleon ? line_table(shape) : rotary_table(shape, shape.prompt_length - 1, 1));
  module.define(drafter_script(shape, head.scalar_type() == at::kBFloat16), std::make_shared<Names>());
  return module;
}

Manifest describe(const SyntheticShape& shape, c10::ScalarType type) {
  const std::string dtype = type == at::kFloat ? "float32" : type == at::kHalf ? "float16" : "bfloat16";
  Manifest manifest;
  manifest.name = manifest.directory = "synthetic " + shape.name;
  manifest.family = shape.chameleon ? "chameleon" : "llamagen-t2i";
  manifest.source = "random weights";
  manifest.modules["target"] = {"", dtype};
  PromptEntry& prompt = manifest.prompt.emplace();
  prompt.kind = shape.chameleon ? "tokens" : "text_features";
  prompt.length = shape.prompt_length;
  prompt.align = shape.chameleon ? "start" : "end";
  prompt.features = shape.chameleon ? 0 : shape.prompt_features;
  if (shape.chameleon) prompt.unconditional.assign(static_cast<std::size_t>(shape.unconditional_length), 0);
  manifest.tokens = {ids(shape), shape.first_image_id, shape.vocabulary};
  const Grid grid = grid_of(shape);
  manifest.grids = {grid};
  manifest.sampling = shape.sampling;
  manifest.target = {shape.hidden, shape.hidden, shape.vocabulary};
  manifest.cache = {shape.layers, shape.kv_heads, shape.head_dim, shape.prompt_length + grid.length()};
  if (shape.drafter) {
    DrafterEntry& drafter = manifest.drafters[kDrafter];
    manifest.first_drafter = kDrafter;
    drafter.module.dtype = dtype;
    drafter.layers = 1;
    drafter.kv_heads = shape.kv_heads;
    drafter.head_dim = shape.head_dim;
    if (!shape.chameleon) drafter.prompt_id = 0;
    drafter.max_length = manifest.cache.max_length;
  }
  return manifest;
}

}  // namespace

std::int64_t weight_bytes(const SyntheticShape& shape, c10::ScalarType dtype) {
  const std::int64_t width = shape.heads * shape.head_dim, kv_width = shape.kv_heads * shape.head_dim;
  const std::int64_t block = shape.hidden * (2 * width + 2 * kv_width + 3 * shape.ffn);
  const std::int64_t ends = shape.hidden * (ids(shape) + shape.vocabulary);
  std::int64_t numbers = shape.layers * block + ends;
  if (!shape.chameleon)
    numbers += (shape.hidden + shape.prompt_length) * shape.prompt_features + shape.hidden * shape.hidden;
  if (shape.drafter) numbers += block + ends + 2 * shape.hidden * shape.hidden;
  return numbers * static_cast<std::int64_t>(c10::elementSize(dtype));
}

SyntheticBundle make_synthetic(const SyntheticShape& shape, const Placement& placement) {
  const c10::InferenceMode inference;
  require_memory(placement.device, weight_bytes(shape, placement.dtype), 1, "random weights",
                 "fewer layers or dtype bf16 need less");
  Weights weights(shape, placement);
  const torch::jit::Module target = make_target(shape, weights);
  const std::int64_t target_bytes = bytes_of(target, {"wqkv", "wo", "w13", "w2", "head"});
  std::optional<Module> drafter;
  std::int64_t drafter_bytes = 0;
  if (shape.drafter) {
    const torch::jit::Module module = make_drafter(shape, weights, target.attr("head").toTensor());
    drafter.emplace(module, "drafter", std::vector<std::string>{"embed", "forward", "logits"}, placement);
    drafter_bytes = bytes_of(module, {"fc", "wqkv", "wo", "w13", "w2", "head"});  // as packed
  }
  std::vector<std::string> methods{"embed", "forward", "logits"};
  if (!shape.chameleon) methods.insert(methods.end(), {"embed_condition", "embed_unconditional"});
  return {describe(shape, placement.dtype), Module(target, "target", methods, placement), std::move(drafter),
          target_bytes, drafter_bytes};
}

}  // namespace lamplighter
