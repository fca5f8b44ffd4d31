#include "draft/lookup/ngram.h"

#include <ATen/ops/full.h>

#include <algorithm>

namespace lamplighter {
namespace {

constexpr std::int64_t kLongest = 3;  // n-gram that is looked up

class Ngram : public DraftMethod {
 public:
  Ngram(const Tree& tree, const c10::Device& device)
      : shape_(shape_of(tree)), topology_(topology(tree, device)), device_(device) {
    topology_.draft_rows.fill_(-1);
  }

  TreeShape shape() const override { return shape_; }
  bool replayable() const override { return false; }
  void allocate(const RunShape& shape, std::int64_t /*rows*/) override { columns_ = shape.grid->columns; }

  Draft draft(const RunState& run) override {
    const at::Tensor codes = run.counters.codes.cpu(), steps = run.counters.steps.cpu();
    at::Tensor tokens = at::full({run.images(), shape_.nodes}, -1, at::kLong);
    for (std::int64_t image = 0; image < run.images(); ++image) {
      const std::int64_t* sampled = codes.const_data_ptr<std::int64_t>() + image * codes.size(1);
      std::int64_t* chain = tokens.mutable_data_ptr<std::int64_t>() + image * shape_.nodes;
      guess(sampled, steps.const_data_ptr<std::int64_t>()[image], chain);
    }
    return {topology_, tokens.to(device_)};
  }

 private:
  // chain [N]: the last token, and what may follow it.
  void guess(const std::int64_t* sampled, std::int64_t length, std::int64_t* chain) const {
    chain[0] = sampled[length - 1];
    std::vector<std::int64_t> guessed = prompt_lookup(sampled, length, kLongest, shape_.depth);
    if (guessed.empty() && length >= columns_) {  // one row up, from the next token's column on
      const std::int64_t* above = sampled + length - columns_;
      guessed.assign(above, above + std::min(columns_, shape_.depth));
    }
    std::copy(guessed.begin(), guessed.end(), chain + 1);
  }

  TreeShape shape_;
  Topology topology_;
  c10::Device device_;
  std::int64_t columns_ = 0;  // codes of a row
};

}  // namespace

std::vector<std::int64_t> prompt_lookup(const std::int64_t* tokens, std::int64_t length, std::int64_t longest,
                                        std::int64_t count) {
  for (std::int64_t n = longest; n > 0; --n) {
    const std::int64_t* last = tokens + length - n;
    for (std::int64_t begin = n; begin + count <= length && begin < length - n; ++begin) {
      if (std::equal(last, last + n, tokens + begin - n)) return {tokens + begin, tokens + begin + count};
    }
  }
  return {};
}

std::unique_ptr<DraftMethod> make_ngram(const Method& method, const Models& models) {
  return std::make_unique<Ngram>(*method.tree, models.target->placement().device);
}

}  // namespace lamplighter
