#include "draft/windows/sjd_pac_official.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <vector>

#include "draft/windows/jacobi.h"

namespace lamplighter {
namespace {

// K = candidates of a position.
class SjdPacOfficial : public Jacobi {
 public:
  SjdPacOfficial(const Method& method, const Models& models) : Jacobi(method, models, true) {}

  void allocate(const RunShape& shape, std::int64_t slots) override {
    Jacobi::allocate(shape, slots);
    others_ = at::full({shape.images, shape_.depth, multi_.count - 1}, -1, offsets_.options());
    even_ = at::zeros({1, 1, vocabulary_}, window_probs_.options());
    even_.narrow(2, 0, codes_).fill_(1 / static_cast<double>(codes_));
  }

  Draft draft(const RunState& run) override {
    Draft draft = Jacobi::draft(run);
    draft.distributions = at::cat({window_probs_, even_.expand({window_probs_.size(0), -1, -1})}, 1);
    return draft;
  }

 protected:
  std::vector<at::Tensor*> window() override { return {&window_tokens_, &window_probs_, &others_}; }

  void clear() override {
    Jacobi::clear();
    others_.fill_(-1);
  }

  at::Tensor other_candidates(const RunState& run) const override {
    const at::Tensor known = others_.narrow(1, 0, multi_.positions);
    return at::where(known >= 0, known, Jacobi::other_candidates(run));
  }

  // Nothing is taken from the row of the last position.
  std::vector<at::Tensor> renewed(const Draft& draft, const Verified& verified,
                                  const RunState& run) const override {
    const std::int64_t length = shape_.depth;
    const at::Tensor& steps = run.counters.steps;
    const at::Tensor tests = ops::uniforms(run.seeds, steps, ops::Purpose::accept, draft.tokens.size(1));
    const at::Tensor uniforms = ops::uniforms(run.seeds, steps, ops::Purpose::window, length * multi_.count);
    const at::Tensor depth = verified.walk.count.unsqueeze(1) + 1 + offsets_;
    const at::Tensor node = stale_nodes(verified).gather(1, depth.clamp_max(length));
    const auto [tokens, rows, left] =
        ops::renew_fan({verified.target, draft.distributions, draft.tokens, draft.nodes.parents,
                        draft.nodes.draft_rows, tests, run.temperature, length},
                       at::where(depth < length, node, -1), uniforms.view({-1, length, multi_.count}));
    return {tokens.select(2, 0), rows, tokens.slice(2, 1)};
  }

 private:
  at::Tensor others_;  // int64 [I, L, K - 1], the other candidates; -1: to be sampled from their row
  at::Tensor even_;    // fp32 [1, 1, V], the row of a new position
};

}  // namespace

std::unique_ptr<DraftMethod> make_sjd_pac_official(const Method& method, const Models& models) {
  return std::make_unique<SjdPacOfficial>(method, models);
}

}  // namespace lamplighter
