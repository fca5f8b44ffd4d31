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

// Vocabulary: codes, and the row end.
std::int64_t ids(const SyntheticShape& shape) {
  return shape.vocabulary + (shape.row_ends ? 1 : 0);
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
  module.register_buffer("fc1", weights.matrix(shape.hidden, shape.prompt_features));
  module.register_buffer("fc2", weights.matrix(shape.hidden, shape.hidden));
  module.register_buffer("null_features", weights.table(shape.prompt_length, shape.prompt_features));
  module.register_buffer("rotary", rotary_table(shape, shape.prompt_length, 0));
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
  module.register_buffer("rotary", rotary_table(shape, shape.prompt_length - 1, 1));
  module.define(drafter_script(shape, head.scalar_type() == at::kBFloat16), std::make_shared<Names>());
  return module;
}

Manifest describe(const SyntheticShape& shape, c10::ScalarType type) {
  const std::string dtype = type == at::kFloat ? "float32" : type == at::kHalf ? "float16" : "bfloat16";
  Manifest manifest;
  manifest.name = manifest.directory = "synthetic " + shape.name;
  manifest.family = "llamagen-t2i";
  manifest.source = "random weights";
  manifest.modules["target"] = {"", dtype};
  manifest.prompt =
      PromptEntry{"text_features", shape.prompt_length, "end", shape.prompt_features, 0, "", {}, {}, {}};
  manifest.tokens = {ids(shape), 0, shape.vocabulary};
  Grid grid;
  grid.rows = shape.rows;
  grid.columns = shape.columns;
  grid.width = shape.columns * kDownsample;
  grid.height = shape.rows * kDownsample;
  if (shape.row_ends) grid.row_end = {shape.vocabulary};
  manifest.grids = {grid};
  manifest.sampling = shape.sampling;
  manifest.target = {shape.hidden, shape.hidden, shape.vocabulary};
  manifest.cache = {shape.layers, shape.kv_heads, shape.head_dim, shape.prompt_length + grid.length()};
  if (shape.drafter) {
    DrafterEntry& drafter = manifest.drafters[kDrafter];
    drafter.module.dtype = dtype;
    drafter.layers = 1;
    drafter.kv_heads = shape.kv_heads;
    drafter.head_dim = shape.head_dim;
    drafter.prompt_id = 0;
    drafter.max_length = manifest.cache.max_length;
  }
  return manifest;
}

SyntheticShape llamagen(const char* name, std::int64_t layers, std::int64_t heads, std::int64_t ffn,
                        int grid) {
  SyntheticShape shape;
  shape.name = name;
  shape.vocabulary = 16384;
  shape.layers = layers;
  shape.heads = shape.kv_heads = heads;
  shape.head_dim = 64;
  shape.hidden = heads * shape.head_dim;
  shape.ffn = ffn;
  shape.prompt_length = 120;
  shape.prompt_features = 2048;
  shape.rows = shape.columns = grid;
  shape.sampling.cfg_scale = 7.5F;
  shape.sampling.top_k = 1000;
  return shape;
}

const std::vector<SyntheticShape>& published() {
  static const std::vector<SyntheticShape> shapes{llamagen("llamagen-l-256", 24, 16, 2816, 16),
                                                  llamagen("llamagen-xl-256", 36, 20, 3584, 16),
                                                  llamagen("llamagen-xl-512", 36, 20, 3584, 32)};
  return shapes;
}

}  // namespace

std::vector<std::string> synthetic_names() {
  std::vector<std::string> names;
  for (const SyntheticShape& shape : published()) names.push_back(shape.name);
  return names;
}

SyntheticShape synthetic_shape(const std::string& name) {
  std::string known;
  for (const SyntheticShape& shape : published()) {
    if (shape.name == name) return shape;
    known += (known.empty() ? "" : ", ") + shape.name;
  }
  throw Error(ExitCode::usage, "synthetic shape: got '" + name + "', expected " + known);
}

SyntheticBundle make_synthetic(const SyntheticShape& shape, const Placement& placement) {
  const c10::InferenceMode inference;
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
  return {describe(shape, placement.dtype),
          Module(target, "target", {"embed_condition", "embed_unconditional", "embed", "forward", "logits"},
                 placement),
          std::move(drafter), target_bytes, drafter_bytes};
}

}  // namespace lamplighter
