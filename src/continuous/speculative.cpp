#include <ATen/ops/cat.h>
#include <ATen/ops/nan_to_num.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "base/stopwatch.h"
#include "continuous/loop.h"
#include "continuous/residual.h"

namespace lamplighter {
namespace {

// The target samples the next token of every image.
void prefill(const ContinuousRun& run, const std::vector<ContinuousImage*>& images) {
  Stopwatch watch;
  ContinuousBatch batch(run.shape);
  for (ContinuousImage* image : images) {
    batch.add_context(*image, image->latents, image->visible);
    batch.add_token(image->sampled, image->left() - 1);
    ++image->statistics.target_passes;
  }
  const ContinuousBatch::Result result = batch.run(*run.target);
  const at::Tensor finite = finite_tokens(result.chain);
  const at::Tensor tokens = result.sample();
  Cycle cycle;
  cycle.cycle_ms = cycle.score_ms = watch.lap();
  for (std::size_t i = 0; i < images.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i);
    check_finite(*images[i], finite, row, 1);
    images[i]->commit(tokens.narrow(0, row, 1), cycle, false);
  }
}

// What is drafted of one image: g tokens behind those that are sampled.
struct Block {
  ContinuousImage* image;
  std::int64_t size;            // g
  at::Tensor latents, visible;  // the image's with the drafts
  at::Tensor seen;              // bool [g + 1, L]: with the first 0 .. g of them
  std::vector<at::Tensor> means, deviations, log_deviations, tokens;  // of the drafts: [1, C]
  std::int64_t row = 0;  // of its first token among the tokens of the target's pass

  bool has_bonus() const { return size < image->left(); }
};

Block begin_block(const ContinuousRun& run, ContinuousImage& image) {
  return {&image,
          std::min(*run.method.gamma, image.left()),
          image.latents.clone(),
          image.visible.clone(),
          {},
          {},
          {},
          {},
          {}};
}

// The j-th draft of all blocks that have one; every one is seen by those behind it.
void draft(const ContinuousRun& run, std::vector<Block>& blocks, std::int64_t j) {
  ContinuousBatch batch(run.shape);
  for (const Block& block : blocks) {
    if (j >= block.size) continue;
    batch.add_context(*block.image, block.latents, block.visible);
    batch.add_token(block.image->sampled + j, block.image->left() - 1 - j);
  }
  if (batch.size() == 0) return;
  const ContinuousBatch::Result result = batch.run(*run.drafter);
  const at::Tensor tokens = result.sample();
  // A draft that is no number is rejected; what stands behind it must not fail because of it.
  const at::Tensor numbers = at::nan_to_num(tokens, 0, 0, 0);
  std::int64_t row = 0;
  for (Block& block : blocks) {
    if (j >= block.size) continue;
    block.means.push_back(result.chain.mean.narrow(0, row, 1));
    block.deviations.push_back(result.chain.deviation.narrow(0, row, 1));
    block.log_deviations.push_back(result.chain.log_deviations.narrow(0, row, 1));
    block.tokens.push_back(tokens.narrow(0, row, 1));
    const at::Tensor position = positions_of(*block.image, block.image->sampled + j, 1).to(numbers.device());
    block.latents.index_copy_(0, position, numbers.narrow(0, row, 1));
    block.visible.index_fill_(0, position, true);
    ++row;
  }
}

// The target at all drafts, each given those before it, and behind the last one.
ContinuousBatch::Result score(const ContinuousRun& run, std::vector<Block>& blocks) {
  ContinuousBatch batch(run.shape);
  for (Block& block : blocks) {
    ContinuousImage& image = *block.image;
    block.row = batch.size();
    at::Tensor seen = image.visible;
    for (std::int64_t j = 0; j < block.size + (block.has_bonus() ? 1 : 0); ++j) {
      batch.add_context(image, block.latents, seen);
      batch.add_token(image.sampled + j, image.left() - 1 - j);
      seen = seen.index_fill(0, positions_of(image, image.sampled + j, 1).to(seen.device()), true);
    }
    ++image.statistics.target_passes;
  }
  return batch.run(*run.target);
}

// Drafts and target side by side, block after block.
struct Compared {
  ops::GaussianPair pair;
  at::Tensor tokens;     // fp32 [n, C], the drafts
  at::Tensor log_sigma;  // fp64 [n]: of the rule paper, else 0
  at::Tensor log_ratio;  // fp64 [n] on the CPU, with log_sigma
};

Compared compare(const ContinuousRun& run, const std::vector<Block>& blocks,
                 const ContinuousBatch::Result& target) {
  std::vector<at::Tensor> means, deviations, log_deviations, tokens;
  std::vector<std::int64_t> rows;
  for (const Block& block : blocks) {
    means.insert(means.end(), block.means.begin(), block.means.end());
    deviations.insert(deviations.end(), block.deviations.begin(), block.deviations.end());
    log_deviations.insert(log_deviations.end(), block.log_deviations.begin(), block.log_deviations.end());
    tokens.insert(tokens.end(), block.tokens.begin(), block.tokens.end());
    for (std::int64_t j = 0; j < block.size; ++j) rows.push_back(block.row + j);
  }
  const at::Tensor which = at::tensor(rows, at::kLong).to(target.chain.mean.device());
  Compared all;
  all.pair = {target.chain.mean.index_select(0, which), target.chain.deviation.index_select(0, which),
              at::cat(means), at::cat(deviations)};
  all.tokens = at::cat(tokens);
  const at::Tensor paths =
      (at::cat(log_deviations) - target.chain.log_deviations.index_select(0, which)).sum(1);
  all.log_sigma = run.method.rule == "paper" ? paths : at::zeros_like(paths);
  all.log_ratio = (all.log_sigma + ops::gaussian_log_ratio(all.tokens, all.pair)).cpu();
  return all;
}

// How many drafts of a block are accepted, from its row of `all` on.
std::int64_t verify(const Block& block, const Compared& all, std::int64_t first) {
  const double* log_ratio = all.log_ratio.const_data_ptr<double>() + first;
  for (std::int64_t j = 0; j < block.size; ++j) {
    const ContinuousImage& image = *block.image;
    const double u = image.samples->verification(image.position(image.sampled + j));
    // False for NaN, of a drafter whose numbers are none.
    if (!(std::isfinite(log_ratio[j]) && std::log(u) < std::min(0.0, log_ratio[j]))) return j;
  }
  return block.size;
}

// Tokens in place of the first rejected draft of every block that has one, by block.
std::vector<at::Tensor> replace(const ContinuousRun& run, const std::vector<Block>& blocks,
                                const Compared& all, const std::vector<std::int64_t>& accepted) {
  std::vector<std::int64_t> rows, bad_rows, owners, bad_owners;
  Rejected rejected, bad;
  std::int64_t first = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const Block& block = blocks[i];
    const std::int64_t row = first + accepted[i];
    first += block.size;
    if (accepted[i] == block.size) continue;
    const bool usable = std::isfinite(all.log_ratio.const_data_ptr<double>()[row]);
    Rejected& of = usable ? rejected : bad;
    of.images.push_back(block.image);
    of.positions.push_back(block.image->position(block.image->sampled + accepted[i]));
    (usable ? rows : bad_rows).push_back(row);
    (usable ? owners : bad_owners).push_back(static_cast<std::int64_t>(i));
  }
  std::vector<at::Tensor> tokens(blocks.size());
  const auto fill = [&](Rejected& of, const std::vector<std::int64_t>& its_rows,
                        const std::vector<std::int64_t>& its_owners, std::int64_t cap) {
    if (its_rows.empty()) return;
    const at::Tensor which = at::tensor(its_rows, at::kLong).to(all.tokens.device());
    const auto select = [&](const at::Tensor& tensor) { return tensor.index_select(0, which); };
    of.pair = {select(all.pair.target_mean), select(all.pair.target_deviation), select(all.pair.draft_mean),
               select(all.pair.draft_deviation)};
    of.log_sigma = select(all.log_sigma);
    const at::Tensor sampled = residual_tokens(of, cap);
    for (std::size_t i = 0; i < its_owners.size(); ++i)
      tokens[static_cast<std::size_t>(its_owners[i])] = sampled.narrow(0, static_cast<std::int64_t>(i), 1);
  };
  fill(rejected, rows, owners, *run.method.cap);
  fill(bad, bad_rows, bad_owners, 1);  // no proposal passes: the first one stays, a sample of the target
  return tokens;
}

void record_drafts(const Block& block, std::int64_t accepted) {
  Statistics& statistics = block.image->statistics;
  const auto size = static_cast<std::size_t>(block.size);
  if (statistics.drafted.size() < size) statistics.drafted.resize(size), statistics.accepted.resize(size);
  for (std::size_t depth = 0; depth < size; ++depth) {
    ++statistics.drafted[depth];
    if (static_cast<std::int64_t>(depth) < accepted) ++statistics.accepted[depth];
  }
}

void commit(const Block& block, std::int64_t accepted, const at::Tensor& replaced,
            const ContinuousBatch::Result& target, Cycle cycle) {
  std::vector<at::Tensor> tokens(block.tokens.begin(), block.tokens.begin() + accepted);
  if (replaced.defined()) tokens.push_back(replaced);
  if (accepted == block.size && block.has_bonus())
    tokens.push_back(target.sample().narrow(0, block.row + accepted, 1));
  record_drafts(block, accepted);
  cycle.accepted = accepted;
  block.image->commit(at::cat(tokens), cycle, true);
}

void speculate(const ContinuousRun& run, const std::vector<ContinuousImage*>& images) {
  Stopwatch watch;
  Cycle cycle;
  std::vector<Block> blocks;
  for (ContinuousImage* image : images) blocks.push_back(begin_block(run, *image));
  for (std::int64_t j = 0; j < *run.method.gamma; ++j) draft(run, blocks, j);
  cycle.draft_ms = watch.lap();
  const ContinuousBatch::Result target = score(run, blocks);
  cycle.score_ms = watch.lap();
  const Compared all = compare(run, blocks, target);
  const at::Tensor finite = finite_tokens(target.chain);
  std::vector<std::int64_t> accepted;
  std::int64_t first = 0;
  for (const Block& block : blocks) {
    accepted.push_back(verify(block, all, first));
    first += block.size;
    // The target's numbers that decide or become a token must not be NaN or infinite.
    const std::int64_t used = std::min(accepted.back() + 1, block.size + (block.has_bonus() ? 1 : 0));
    check_finite(*block.image, finite, block.row, used);
  }
  const std::vector<at::Tensor> replaced = replace(run, blocks, all, accepted);
  cycle.verify_ms = watch.lap();
  cycle.cycle_ms = cycle.draft_ms + cycle.score_ms + cycle.verify_ms;
  for (std::size_t i = 0; i < blocks.size(); ++i) commit(blocks[i], accepted[i], replaced[i], target, cycle);
}

}  // namespace

void advance_speculative(const ContinuousRun& run, const std::vector<ContinuousImage*>& images) {
  const auto first = static_cast<std::int64_t>(
      std::ceil(shortest(*run.method.prefill_ratio) * static_cast<double>(run.shape.positions)));
  std::vector<ContinuousImage*> early, late;
  for (ContinuousImage* image : images) (image->sampled < first ? early : late).push_back(image);
  if (!early.empty()) prefill(run, early);
  if (!late.empty()) speculate(run, late);
}

}  // namespace lamplighter
