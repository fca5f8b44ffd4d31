#include "continuous/residual.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace lamplighter {

Proposals sample_proposals(const Rejected& rejected, const std::vector<std::int64_t>& rows,
                           std::int64_t first, std::int64_t count) {
  const std::int64_t channels = rejected.pair.target_mean.size(1);
  const auto n = static_cast<std::int64_t>(rows.size());
  at::Tensor normals = at::empty({n, count, channels}, at::kFloat);
  at::Tensor uniforms = at::empty({n, count}, at::kDouble);
  for (std::int64_t i = 0; i < n; ++i) {
    const auto row = static_cast<std::size_t>(rows[static_cast<std::size_t>(i)]);
    rejected.images[row]->samples->proposals(rejected.positions[row], first, count,
                                             normals.mutable_data_ptr<float>() + i * count * channels,
                                             uniforms.mutable_data_ptr<double>() + i * count);
  }
  const at::Device device = rejected.pair.target_mean.device();
  return {normals.to(device), uniforms.to(device)};
}

// Most rows take few proposals, some take hundreds: chunks grow.
at::Tensor residual_tokens(const Rejected& rejected, std::int64_t cap) {
  constexpr std::int64_t kFirst = 8, kMost = 256;
  const at::Device device = rejected.pair.target_mean.device();
  at::Tensor tokens = at::empty_like(rejected.pair.target_mean);
  std::vector<std::int64_t> rows(rejected.images.size());
  std::iota(rows.begin(), rows.end(), std::int64_t{0});
  std::int64_t chunk = 0;
  for (std::int64_t first = 0; first < cap && !rows.empty(); first += chunk) {
    chunk = std::min({chunk == 0 ? kFirst : 2 * chunk, kMost, cap - first});
    const at::Tensor indices = at::tensor(rows, at::kLong).to(device);
    const auto of = [&](const at::Tensor& tensor) { return tensor.index_select(0, indices); };
    const ops::GaussianPair& all = rejected.pair;
    const Proposals proposals = sample_proposals(rejected, rows, first, chunk);
    const auto [token, tries] = ops::gaussian_residual(
        {of(all.target_mean), of(all.target_deviation), of(all.draft_mean), of(all.draft_deviation)},
        of(rejected.log_sigma), proposals.normals, proposals.uniforms);
    tokens.index_copy_(0, indices, token);
    const at::Tensor counts = tries.cpu();
    std::vector<std::int64_t> open;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      Statistics& statistics = rejected.images[static_cast<std::size_t>(rows[i])]->statistics;
      const std::int64_t accepted = counts.const_data_ptr<std::int64_t>()[i];
      statistics.proposals += accepted > 0 ? accepted : chunk;
      if (accepted == 0) open.push_back(rows[i]);
    }
    rows = std::move(open);
  }
  for (const std::int64_t row : rows) ++rejected.images[static_cast<std::size_t>(row)]->statistics.fallbacks;
  return tokens;
}

}  // namespace lamplighter
