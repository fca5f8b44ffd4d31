#include "continuous/batch.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>

#include <utility>

namespace lamplighter {

void ContinuousBatch::add_context(const ContinuousImage& image, const at::Tensor& latents,
                                  const at::Tensor& visible) {
  contexts_.push_back({&image, latents, visible});
}

void ContinuousBatch::add_token(std::int64_t k, std::int64_t masked) {
  const ContinuousImage& image = *contexts_.back().image;
  tokens_.push_back(
      {static_cast<std::int64_t>(contexts_.size()) - 1, image.position(k), image.request.scale(masked)});
}

bool ContinuousBatch::is_guided(const Token& token) const {
  return contexts_[static_cast<std::size_t>(token.context)].image->request.is_guided();
}

ContinuousBatch::Result ContinuousBatch::run(const ContinuousModel& model) const {
  const c10::Device device = model.device();
  // Guided contexts come once more, without their class, behind all others.
  std::vector<at::Tensor> latents, visible;
  std::vector<std::int64_t> classes;
  for (const Context& context : contexts_) {
    latents.push_back(context.latents);
    visible.push_back(context.visible);
    classes.push_back(context.image->request.class_id);
  }
  for (const Context& context : contexts_) {
    if (!context.image->request.is_guided()) continue;
    latents.push_back(context.latents);
    visible.push_back(context.visible);
    classes.push_back(shape_.classes);
  }
  const at::Tensor z =
      model.context(at::stack(latents), at::stack(visible), at::tensor(classes, at::kLong).to(device));

  at::Tensor start = at::empty({size(), shape_.channels}, at::kFloat);
  at::Tensor noise = at::empty({size(), shape_.steps, shape_.channels}, at::kFloat);
  std::vector<std::int64_t> guided, plain;
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    const Token& token = tokens_[i];
    const auto row = static_cast<std::int64_t>(i);
    const RandomNumbers& samples = *contexts_[static_cast<std::size_t>(token.context)].image->samples;
    samples.start(token.position, start.mutable_data_ptr<float>() + row * shape_.channels);
    samples.noise(token.position, noise.mutable_data_ptr<float>() + row * shape_.steps * shape_.channels);
    (is_guided(token) ? guided : plain).push_back(row);
  }
  start = start.to(device);
  noise = noise.to(device);
  Result result{{}, noise.select(1, 0)};
  if (guided.empty() || plain.empty()) {
    result.chain = denoise(model, z, plain.empty(), plain.empty() ? guided : plain, start, noise);
    return result;
  }
  const ContinuousModel::Chain one = denoise(model, z, true, guided, start, noise);
  const ContinuousModel::Chain other = denoise(model, z, false, plain, start, noise);
  const at::Tensor indices =
      at::cat({at::tensor(guided, at::kLong), at::tensor(plain, at::kLong)}).argsort().to(device);
  const auto merge = [&](const at::Tensor& first, const at::Tensor& second) {
    return at::cat({first, second}).index_select(0, indices);
  };
  result.chain = {merge(one.mean, other.mean), merge(one.deviation, other.deviation),
                  merge(one.log_deviations, other.log_deviations)};
  return result;
}

ContinuousModel::Chain ContinuousBatch::denoise(const ContinuousModel& model, const at::Tensor& z,
                                                bool guided, const std::vector<std::int64_t>& tokens,
                                                const at::Tensor& start, const at::Tensor& noise) const {
  const c10::Device device = model.device();
  std::vector<std::int64_t> half(contexts_.size());  // the context without a class
  auto next = static_cast<std::int64_t>(contexts_.size());
  for (std::size_t i = 0; i < contexts_.size(); ++i)
    half[i] = contexts_[i].image->request.is_guided() ? next++ : 0;
  std::vector<std::int64_t> with, without;
  std::vector<float> scale, temperature;
  for (const std::int64_t row : tokens) {
    const Token& token = tokens_[static_cast<std::size_t>(row)];
    const auto context = static_cast<std::size_t>(token.context);
    with.push_back(token.context * shape_.positions + token.position);
    without.push_back(half[context] * shape_.positions + token.position);
    scale.push_back(token.scale);
    temperature.push_back(contexts_[context].image->request.temperature);
  }
  const at::Tensor conditions = z.flatten(0, 1);
  const auto rows = [&](const std::vector<std::int64_t>& indices) {
    return conditions.index_select(0, at::tensor(indices, at::kLong).to(device));
  };
  const at::Tensor which = at::tensor(tokens, at::kLong).to(device);
  const bool all = static_cast<std::int64_t>(tokens.size()) == size();
  return model.denoise(rows(with), guided ? rows(without) : conditions.narrow(0, 0, 0),
                       at::tensor(scale).to(device), all ? start : start.index_select(0, which),
                       all ? noise : noise.index_select(0, which), at::tensor(temperature).to(device));
}

at::Tensor finite_tokens(const ContinuousModel::Chain& chain) {
  return at::isfinite(chain.mean).logical_and(at::isfinite(chain.deviation)).all(1).cpu();
}

void check_finite(ContinuousImage& image, const at::Tensor& finite, std::int64_t first, std::int64_t count) {
  if (!finite.narrow(0, first, count).all().item<bool>()) image.damaged = true;
}

}  // namespace lamplighter
