#include <ATen/Parallel.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "tests/draft/drafters/random_drafter.h"
#include "tests/draft/wrapped.h"

namespace lamplighter::test {
namespace {

constexpr std::int64_t kWindow = 3;

// What was drafted below the root of every cycle.
struct Proposal {
  std::int64_t step;  // committed codes
  at::Tensor tokens;  // int64 [nodes]
};
std::vector<Proposal> proposals;

class Recorded : public Wrapped {
 public:
  using Wrapped::Wrapped;

  Draft draft(const RunState& run) override {
    Draft draft = Wrapped::draft(run);
    proposals.push_back({run.counters.steps.item<std::int64_t>(), draft.tokens[0].clone()});
    return draft;
  }
};

std::unique_ptr<DraftMethod> make_recorded(const Method& method, const Models& models) {
  return std::make_unique<Recorded>(make_flash(method, models));
}

// Guided most probable tokens int64 [heads] behind the first `step` codes [1, T] of an image, from one pass
// over what the last row sees: the prompt, the newest rows of the image, and the others compressed.
at::Tensor plain_guesses(const Guessed& guessed, const Prompts& prompts, const at::Tensor& codes,
                         std::int64_t step, double guidance) {
  const Target& target = guessed.toy.target;
  const DraftModel& drafter = guessed.drafter;
  const FlashLayer flash(drafter);
  const std::int64_t length = prompts.valid[0].item<std::int64_t>(), count = length + step - 1;
  const at::Tensor image = target.embed(codes.narrow(1, 0, step - 1).expand({2, -1}).contiguous());
  const at::Tensor rows = at::cat({prompts.rows.narrow(1, 0, length), image}, 1);
  const std::int64_t first = target.manifest().prompt->length - length;  // prompts are aligned at their end
  const at::Tensor positions = (at::arange(count, at::kLong) + first).expand({2, -1}).contiguous();
  const at::Tensor none = at::empty({0}, at::kLong), start = at::zeros({2}, at::kLong);
  const at::Tensor features =
      target.forward(rows, positions, none, start, target.make_cache(2, count)).features;
  const at::Tensor behind =
      at::cat({at::zeros({2, length - 1}, at::kLong), codes.narrow(1, 0, step).expand({2, -1})}, 1);

  const std::int64_t old = std::max<std::int64_t>(0, step - 1 - kWindow), queries = drafter.entry().queries;
  const auto seen = [&](const at::Tensor& all) {
    return at::cat({all.narrow(1, 0, length), all.slice(1, length + old)}, 1).contiguous();
  };
  const at::Tensor history = features.slice(1, length - 1);
  const at::Tensor compressed = flash.compress(history, at::full({2}, old, at::kLong));
  const at::Tensor places =
      (at::arange(queries, at::kLong) + (first + count - kWindow - queries)).clamp_min(0).expand({2, -1});
  const at::Tensor ids = seen(behind);
  const std::int64_t own = ids.size(1), all = own + (old > 0 ? queries : 0);
  const at::Tensor itself = at::arange(own + queries, at::kLong);
  const auto seen_bits = static_cast<std::int64_t>((std::uint64_t{1} << all) - 1);
  const at::Tensor mask =
      at::full_like(itself, 1).bitwise_left_shift(itself).bitwise_or(seen_bits).view({1, -1, 1});
  const at::Tensor hidden =
      flash
          .forward_compressed(EagleLayer(drafter).embed(ids), seen(features), compressed,
                              at::cat({seen(positions), places}, 1).contiguous(), mask, start,
                              drafter.make_cache(2, own + queries))
          .narrow(1, own - 1, 1)
          .contiguous();
  const at::Tensor logits = flash.heads(hidden);
  return (logits[1] + (logits[0] - logits[1]) * guidance).argmax(-1);
}

TEST(Flash, SeesItsWindowAndTheRestCompressed) {
  at::set_num_threads(1);
  const c10::InferenceMode inference;
  const Guessed guessed(small_shape(), "flash_compressed", kWindow);
  Method method = heads_method("flash_compressed", preset_tree("chain-3"), "exact", true);
  method.draft_method = &make_recorded;
  DecodeRequest request;
  request.seed = 11;
  const Prompts prompts = guessed.toy.prompts({0}, true);
  proposals.clear();
  const at::Tensor codes = decode(guessed.models(), method, prompts, {request}, guessed.toy.grid());
  ASSERT_GT(proposals.size(), 6U);
  EXPECT_GT(proposals.back().step, 2 * kWindow);
  for (const Proposal& proposal : proposals) {
    const at::Tensor expected =
        plain_guesses(guessed, prompts, codes, proposal.step, request.sampling.cfg_scale);
    EXPECT_TRUE(at::equal(proposal.tokens.slice(0, 1), expected)) << proposal.step;
  }
}

}  // namespace
}  // namespace lamplighter::test
