#include "bundle/synthetic/modules.h"

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
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/jit/api/module.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "bundle/synthetic/script.h"
#include "kernels/common/large_pages.h"

namespace lamplighter {
namespace {

constexpr double kTargetEps = 1e-5, kDrafterEps = 1e-6;  // of norms

// Normal numbers in the storage dtype: one block, taken piece by piece and over again. 2^20 + 7 numbers: rows
// of the usual widths never start at the same place of it.
class Weights {
 public:
  Weights(const SyntheticShape& shape, const Placement& placement, const BytesMade& made)
      : made_(made),
        all_(weight_bytes(shape, placement.dtype)),
        scale_(shape.weight_scale),
        options_(at::dtype(placement.dtype).device(placement.device)) {
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
  void finish() const {
    if (made_) made_(all_, all_);
  }

 private:
  at::Tensor normal(at::IntArrayRef shape, double deviation) {
    at::Tensor result =
        options_.device().is_cpu() ? empty_in_large_pages(shape, options_) : at::empty(shape, options_);
    at::Tensor flat = result.view({-1});
    // One pass over memory fills a large tensor: the block lies in the cache.
    const bool is_large = flat.numel() > block_.numel();
    const at::Tensor block = is_large ? block_ * deviation : block_;
    for (std::int64_t done = 0; done < flat.numel();) {
      const std::int64_t count = std::min(flat.numel() - done, block.numel() - next_);
      flat.narrow(0, done, count).copy_(block.narrow(0, next_, count));
      done += count;
      next_ = (next_ + count) % block.numel();
    }
    if (!is_large) flat.mul_(deviation);
    bytes_ += static_cast<std::int64_t>(result.nbytes());
    if (made_) made_(std::min(bytes_, all_), all_);
    return result;
  }

  const BytesMade& made_;
  std::int64_t bytes_ = 0, all_;
  double scale_;
  at::TensorOptions options_;
  at::Tensor block_;
  std::int64_t next_ = 0;
};

// Angles of the Chameleon family: every pair turns with the position.
at::Tensor line_table(const SyntheticShape& shape) {
  const std::int64_t half = shape.head_dim / 2;
  const at::Tensor theta =
      at::pow(10000.0, at::arange(half, at::kFloat) * (-1.0 / static_cast<double>(half)));
  const at::Tensor position = at::arange(shape.prompt_length + shape.grid().length(), at::kFloat);
  const at::Tensor angles = position.unsqueeze(1) * theta;
  return at::stack({angles.cos(), angles.sin()}, -1);
}

// LlamaGen's rotations [prefix + rows * columns + after, head_dim / 2, 2] as (cos, sin): half of the pairs
// turn with the row, half with the column of a cell; rows of the prompt and past the image are zero.
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

// Rotations that leave queries and keys as they are.
at::Tensor no_rotation(const SyntheticShape& shape) {
  const at::Tensor ones = at::ones({shape.prompt_length + shape.grid().length(), shape.head_dim / 2});
  return at::stack({ones, at::zeros_like(ones)}, -1);
}

// Adds numbers, truth values and modules that the methods read.
void set(torch::jit::Module& module, const std::vector<std::pair<const char*, c10::IValue>>& attributes) {
  for (const auto& [name, value] : attributes) module.register_attribute(name, value.type(), value);
}

// Fills in what models/transformer/layer.py keeps of a block.
void fill_layer(torch::jit::Module& module, const SyntheticShape& shape, Weights& weights,
                std::int64_t number) {
  const std::int64_t width = shape.heads * shape.head_dim;
  const std::int64_t qkv_width = width + 2 * shape.kv_heads * shape.head_dim;
  set(module, {{"number", number},
               {"dim", shape.hidden},
               {"heads", shape.heads},
               {"head_dim", shape.head_dim},
               {"kv_heads", shape.kv_heads},
               {"qkv_width", qkv_width},
               {"ffn_width", 2 * shape.ffn},
               {"scale", 1 / std::sqrt(static_cast<double>(shape.head_dim))},
               {"qkv_bias", shape.qkv_bias},
               {"qk_norm", shape.has_head_norms()},
               {"head_rms", shape.head_rms},
               {"swin_norm", false},
               {"branch_norms", shape.branch_norms}});
  module.register_buffer("wqkv", weights.matrix(qkv_width, shape.hidden));
  module.register_buffer("bqkv", weights.zeros(shape.qkv_bias ? qkv_width : 0));
  module.register_buffer("wo", weights.matrix(shape.hidden, width));
  module.register_buffer("w13", weights.matrix(2 * shape.ffn, shape.hidden));
  module.register_buffer("w2", weights.matrix(shape.hidden, shape.ffn));
  module.register_buffer("attention_norm", weights.ones(shape.hidden));
  module.register_buffer("feed_norm", weights.ones(shape.hidden));
  for (const char* name : {"q_norm", "k_norm"})
    module.register_buffer(name, weights.ones(shape.head_rms ? shape.head_dim : 0));
  for (const char* name : {"attention_out_norm", "feed_out_norm"})
    module.register_buffer(name, weights.ones(shape.branch_norms ? shape.hidden : 0));
  const std::int64_t normed = shape.has_head_norms() ? (shape.heads + shape.kv_heads) * shape.head_dim : 0;
  module.register_buffer("qk_norm_weight", weights.ones(normed).view({-1, shape.head_dim}));
  module.register_buffer("qk_norm_bias", weights.zeros(normed).view({-1, shape.head_dim}));
}

// Blocks of one type, so that their methods are compiled once.
std::vector<torch::jit::Module> make_layers(const SyntheticShape& shape, Weights& weights, std::int64_t count,
                                            double eps, bool int8) {
  std::vector<torch::jit::Module> layers;
  for (std::int64_t number = 0; number < count; ++number) {
    layers.push_back(number == 0 ? torch::jit::Module("SyntheticLayer") : layers.front().copy());
    fill_layer(layers.back(), shape, weights, number);
    set(layers.back(), {{"eps", eps}, {"qk_norm_eps", eps}, {"int8", int8}});
    if (number == 0) define_layer(layers.back());
  }
  return layers;
}

// One product, or what models/transformer/head.py keeps of a head of two layers.
void fill_head(torch::jit::Module& module, const SyntheticShape& shape, Weights& weights) {
  const std::int64_t inputs = shape.head_width > 0 ? shape.head_width : shape.hidden;
  module.register_buffer("head", weights.matrix(shape.vocabulary, inputs));
  if (shape.head_width == 0) return;
  set(module, {{"head_width", shape.head_width}, {"int8_head", false}});
  module.register_buffer("head_in", weights.matrix(shape.head_width, shape.hidden));
  module.register_buffer("head_in_bias", weights.zeros(shape.head_width));
  module.register_buffer("head_bias", weights.zeros(shape.vocabulary));
}

// What models/llamagen or models/tar keeps to make rows of a prompt's features.
void fill_condition(torch::jit::Module& module, const SyntheticShape& shape, Weights& weights) {
  set(module, {{"dim", shape.hidden}});
  if (shape.learned_positions) {
    set(module, {{"last_place", shape.places() - 1}});
    module.register_buffer("condition", weights.matrix(shape.hidden, shape.prompt_features));
    module.register_buffer("condition_bias", weights.zeros(shape.hidden));
    module.register_buffer("places", weights.table(shape.places(), shape.hidden));
    return;
  }
  set(module, {{"length", shape.prompt_length}});
  module.register_buffer("fc1", weights.matrix(shape.hidden, shape.prompt_features));
  module.register_buffer("fc2", weights.matrix(shape.hidden, shape.hidden));
  module.register_buffer("null_features", weights.table(shape.prompt_length, shape.prompt_features));
}

at::Tensor target_rotations(const SyntheticShape& shape) {
  if (shape.chameleon) return line_table(shape);
  return shape.learned_positions ? no_rotation(shape) : rotary_table(shape, shape.prompt_length, 0);
}

torch::jit::Module make_target(const SyntheticShape& shape, Weights& weights) {
  torch::jit::Module module("SyntheticTarget");
  std::vector<c10::IValue> layers;
  for (const torch::jit::Module& layer : make_layers(shape, weights, shape.layers, kTargetEps, false)) {
    layers.emplace_back(layer._ivalue());
  }
  set(module, {{"eps", kTargetEps},
               {"swin_norm", false},
               {"vocabulary", shape.vocabulary},
               {"layers", c10::ivalue::Tuple::create(std::move(layers))}});
  module.register_buffer("first_norm", weights.ones(shape.hidden));
  module.register_buffer("last_norm", weights.ones(0));
  module.register_buffer("embedding", weights.table(shape.ids(), shape.hidden));
  fill_head(module, shape, weights);
  module.register_buffer("rotary", target_rotations(shape));
  if (!shape.chameleon) fill_condition(module, shape, weights);
  define_target(module, shape.learned_positions ? TargetText::tar
                        : !shape.chameleon      ? TargetText::llamagen
                        : shape.head_width > 0  ? TargetText::two_layers
                                                : TargetText::tokens);
  return module;
}

// With the target's head. Row p of a LlamaGen drafter's rotations belongs to the token at p + 1.
torch::jit::Module make_drafter(const SyntheticShape& shape, Weights& weights,
                                const torch::jit::Module& target) {
  torch::jit::Module module("SyntheticDraftModel");
  module.register_module("layer", make_layers(shape, weights, 1, kDrafterEps, true).front());
  set(module, {{"hidden", shape.hidden},
               {"vocabulary", shape.vocabulary},
               {"eps", kDrafterEps},
               {"fc_bias", true},
               {"input_norm", false},
               {"head_width", shape.head_width},
               {"int8_head", true}});
  module.register_buffer("embedding", weights.table(shape.ids(), shape.hidden));
  module.register_buffer("fc", weights.matrix(shape.hidden, 2 * shape.hidden));
  module.register_buffer("bias", weights.zeros(shape.hidden));
  module.register_buffer("first_norm", weights.ones(0));
  for (const char* name : {"head", "head_in", "head_in_bias", "head_bias"}) {
    if (target.hasattr(name)) module.register_buffer(name, target.attr(name).toTensor().clone());
  }
  module.register_buffer(
      "rotary", shape.chameleon ? line_table(shape) : rotary_table(shape, shape.prompt_length - 1, 1));
  define_drafter(module, shape.head_width > 0);
  return module;
}

std::int64_t bytes_of(const torch::jit::Module& module, const std::vector<std::string>& read) {
  std::int64_t bytes = 0;
  for (const std::string& name : read)
    bytes += static_cast<std::int64_t>(module.attr(name).toTensor().nbytes());
  return bytes;
}

// Bytes of a head that a pass reads.
std::int64_t head_bytes(const torch::jit::Module& module, const SyntheticShape& shape) {
  return bytes_of(module, {"head"}) + (shape.head_width > 0 ? bytes_of(module, {"head_in"}) : 0);
}

// Bytes of the weights of a block that a pass reads.
std::int64_t layer_bytes(const torch::jit::Module& layer) {
  return bytes_of(layer, {"wqkv", "wo", "w13", "w2"});
}

}  // namespace

SyntheticModules make_modules(const SyntheticShape& shape, const Placement& placement,
                              const BytesMade& made) {
  Weights weights(shape, placement, made);
  SyntheticModules modules{make_target(shape, weights), std::nullopt};
  if (shape.drafter) modules.drafter = make_drafter(shape, weights, modules.target);
  weights.finish();
  return modules;
}

std::int64_t target_bytes(const torch::jit::Module& target, const SyntheticShape& shape) {
  std::int64_t bytes = head_bytes(target, shape);
  const c10::IValue layers = target.attr("layers");
  for (const c10::IValue& layer : layers.toTupleRef().elements())
    bytes += layer_bytes(torch::jit::Module(layer.toObject()));
  return bytes;
}

std::int64_t drafter_bytes(const torch::jit::Module& drafter, const SyntheticShape& shape) {
  return bytes_of(drafter, {"fc"}) + head_bytes(drafter, shape) +
         layer_bytes(drafter.attr("layer").toModule());
}

}  // namespace lamplighter
