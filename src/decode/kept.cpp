#include "decode/kept.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "draft/drafters/eagle_layer.h"

namespace lamplighter {
namespace {

// The ids of kept codes as the target reads them.
std::vector<std::int64_t> fed_ids(const Manifest& manifest, const Grid& grid,
                                  const std::vector<std::int32_t>& kept) {
  std::vector<std::int64_t> ids;
  for (const std::int32_t& code : kept) {
    ids.push_back(manifest.tokens.first_image_id + code);
    const auto codes = static_cast<std::int64_t>(&code - kept.data()) + 1;
    if (!grid.row_end.empty() && codes % grid.columns == 0) ids.push_back(grid.row_end.front());
  }
  return ids;
}

// Puts what each sequence keeps between its valid rows and its padding.
class Insertion {
 public:
  Insertion(const Prompts& prompts, const std::vector<std::vector<std::int64_t>>& ids) : ids_(ids) {
    const std::int64_t sequences = prompts.valid.size(0);
    each_ = sequences / static_cast<std::int64_t>(ids.size());
    std::int64_t longest = 0;
    for (std::int64_t s = 0; s < sequences; ++s) {
      before_.push_back(prompts.valid[s].item<std::int64_t>());
      valid_.push_back(before_.back() + kept(s));
      longest = std::max(longest, kept(s));
    }
    length_ =
        prompts.padded ? prompts.rows.size(1) + longest : *std::max_element(valid_.begin(), valid_.end());
  }

  at::Tensor valid() const { return at::tensor(valid_); }

  // `all` [S, T, ...] with `own(ids)`, [kept, ...] for the ids int64 [kept] of a sequence, behind valid rows.
  template <class Own>
  at::Tensor into(const at::Tensor& all, const Own& own) const {
    std::vector<std::int64_t> shape = all.sizes().vec();
    shape[1] = length_;
    at::Tensor longer = at::zeros(shape, all.options());
    for (std::int64_t s = 0; s < all.size(0); ++s) {
      const auto at = static_cast<std::size_t>(s);
      const std::int64_t padding = std::min(all.size(1) - before_[at], length_ - valid_[at]);
      const at::Tensor row = longer[s];
      row.narrow(0, 0, before_[at]).copy_(all[s].narrow(0, 0, before_[at]));
      if (kept(s) > 0) row.narrow(0, before_[at], kept(s)).copy_(own(ids(s, all.device())));
      row.narrow(0, valid_[at], padding).copy_(all[s].narrow(0, before_[at], padding));
    }
    return longer;
  }

 private:
  const std::vector<std::int64_t>& of(std::int64_t s) const {
    return ids_[static_cast<std::size_t>(s / each_)];
  }
  std::int64_t kept(std::int64_t s) const { return static_cast<std::int64_t>(of(s).size()); }
  at::Tensor ids(std::int64_t s, const c10::Device& device) const { return at::tensor(of(s)).to(device); }

  const std::vector<std::vector<std::int64_t>>& ids_;  // by image
  std::int64_t each_ = 1, length_ = 0;                 // sequences of an image, rows of all
  std::vector<std::int64_t> before_, valid_;           // by sequence: valid rows without and with kept ones
};

}  // namespace

Prompts with_kept(const Models& models, const Prompts& prompts, const std::vector<DecodeRequest>& requests,
                  const Grid& grid) {
  const Target& target = *models.target;
  std::vector<std::vector<std::int64_t>> ids;
  for (const DecodeRequest& request : requests) ids.push_back(fed_ids(target.manifest(), grid, request.kept));
  if (std::all_of(ids.begin(), ids.end(), [](const auto& own) { return own.empty(); })) return prompts;
  const Insertion insertion(prompts, ids);
  const auto embedded = [](const auto& model) {
    return [&model](const at::Tensor& own) { return model.embed(own.unsqueeze(0)).squeeze(0); };
  };
  const auto as_they_are = [](const at::Tensor& own) { return own; };
  Prompts all = prompts;
  all.rows = insertion.into(prompts.rows, embedded(target));
  all.valid = insertion.valid();
  if (prompts.ids.defined()) all.ids = insertion.into(prompts.ids, as_they_are);
  if (prompts.drafter_rows.defined())
    all.drafter_rows = insertion.into(prompts.drafter_rows, embedded(SmallTarget(*models.drafter)));
  const at::Tensor none = at::zeros({prompts.rows.size(0), prompts.rows.size(1)},
                                    at::dtype(at::kLong).device(prompts.rows.device()));
  all.kept_ids = insertion.into(none, [](const at::Tensor& own) { return own + 1; }) - 1;
  return all;
}

at::Tensor kept_counts(const Prompts& prompts) {
  if (prompts.kept_ids.defined()) return (prompts.kept_ids >= 0).sum(1);
  return at::zeros({prompts.valid.size(0)}, at::dtype(at::kLong).device(prompts.rows.device()));
}

}  // namespace lamplighter
