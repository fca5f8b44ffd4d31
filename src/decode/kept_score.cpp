#include "decode/kept_score.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>

#include "bundle/manifest/guidance.h"
#include "decode/kept.h"
#include "decode/parts.h"
#include "decode/prefill.h"

namespace lamplighter {
namespace {

constexpr std::int64_t kRows = 64;  // whose logits are held at a time

// The final rows [S, T, H] of a pass over the prompt and all codes.
at::Tensor hidden_rows(const Target& target, const Prompts& prompts) {
  const at::Tensor positions = prompt_positions(target, prompts);
  const std::int64_t sequences = positions.size(0), length = positions.size(1);
  const auto integers = at::dtype(at::kLong).device(positions.device());
  at::Tensor cache = target.make_cache(sequences, length);
  return target
      .forward(prompts.rows.narrow(1, 0, length).contiguous(), positions, at::empty({0}, integers),
               at::zeros({sequences}, integers), cache)
      .hidden;
}

// Log probabilities fp64 [R, V] of logits [S, R, V] of one image, guided with the scales fp64 [R].
at::Tensor log_probabilities(const at::Tensor& logits, const at::Tensor& scales) {
  const at::Tensor wide = logits.to(at::kDouble);
  const at::Tensor conditional = wide[0];
  if (wide.size(0) == 1) return conditional.log_softmax(-1);
  return (wide[1] + (conditional - wide[1]) * scales.unsqueeze(1)).log_softmax(-1);
}

}  // namespace

double kept_log_probability(const Models& models, const Prompts& prompts, const DecodeRequest& request,
                            const std::vector<std::int32_t>& codes, const Grid& grid) {
  const c10::InferenceMode inference;
  const Target& target = *models.target;
  const c10::Device device = target.placement().device;
  const Prompts all = with_kept(models, prompts, {{request.sampling, request.seed, codes}}, grid);
  const at::Tensor hidden = hidden_rows(target, all);
  const std::vector<float> scales =
      guidance_scales(target.manifest().schedule, grid, request.sampling, grid.tokens());
  std::vector<std::int64_t> row, code;  // behind the prompt's last row; of the tokens that count
  std::vector<double> scale;
  for (std::int64_t i = next_missing(request.kept, 0, grid.tokens());
       i < static_cast<std::int64_t>(request.kept.size()); ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (request.kept[at] < 0) continue;
    row.push_back(i + (grid.row_end.empty() ? 0 : i / grid.columns));
    code.push_back(request.kept[at]);
    scale.push_back(scales[at]);
  }
  const at::Tensor last = (prompts.valid - 1).unsqueeze(1).to(device);  // [S, 1]
  const at::Tensor rows = last + at::tensor(row).to(device), wanted = at::tensor(code).to(device);
  const at::Tensor factors = at::tensor(scale).to(device);
  double sum = 0;
  for (std::int64_t begin = 0; begin < wanted.size(0); begin += kRows) {
    const std::int64_t count = std::min(kRows, wanted.size(0) - begin);
    const at::Tensor logits = target.logits(rows_at(hidden, rows.narrow(1, begin, count)));
    sum += log_probabilities(logits, factors.narrow(0, begin, count))
               .gather(1, wanted.narrow(0, begin, count).unsqueeze(1))
               .sum()
               .item<double>();
  }
  return sum;
}

}  // namespace lamplighter
