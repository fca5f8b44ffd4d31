#include "decode/slots.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <utility>

namespace lamplighter {
namespace {

// What belongs to one image or sequence each, along dimension 0.
std::vector<at::Tensor*> rows_of(DecodeState& s) {
  std::vector<at::Tensor*> rows;
  for (Filter* filter : {&s.target_filter, &s.draft_filter})
    rows.insert(rows.end(), {&filter->temperature, &filter->top_k, &filter->top_p});
  rows.insert(rows.end(), {&s.image, &s.seeds, &s.guidance, &s.interval, &s.temperature, &s.steps, &s.codes,
                           &s.root, &s.bad, &s.report, &s.lengths, &s.position});
  if (s.draft_cache.defined())
    rows.insert(rows.end(),
                {&s.fresh, &s.fresh_ids, &s.fresh_positions, &s.fresh_features, &s.draft_lengths});
  return rows;
}

// Sequences along dimension 2, rows along dimension 4.
std::vector<at::Tensor*> caches_of(DecodeState& s) {
  if (!s.draft_cache.defined()) return {&s.cache};
  return {&s.cache, &s.draft_cache};
}

// Images begin .. begin + count - 1 of a tensor with one or two entries each along a dimension.
at::Tensor part(const at::Tensor& tensor, std::int64_t dimension, std::int64_t images, std::size_t begin,
                std::size_t count) {
  const std::int64_t each = tensor.size(dimension) / images;
  return tensor.narrow(dimension, static_cast<std::int64_t>(begin) * each,
                       static_cast<std::int64_t>(count) * each);
}

void copy_images(DecodeState& from, std::size_t first, std::size_t count, DecodeState& to, std::size_t slot) {
  const std::int64_t images = from.images(), slots = to.images();
  const std::vector<at::Tensor*> rows = rows_of(from), own = rows_of(to);
  for (std::size_t i = 0; i < rows.size(); ++i)
    part(*own[i], 0, slots, slot, count).copy_(part(*rows[i], 0, images, first, count));
  const std::vector<at::Tensor*> caches = caches_of(from), own_caches = caches_of(to);
  for (std::size_t i = 0; i < caches.size(); ++i) {
    const std::int64_t kept = std::min(caches[i]->size(4), own_caches[i]->size(4));
    part(*own_caches[i], 2, slots, slot, count)
        .narrow(4, 0, kept)
        .copy_(part(*caches[i], 2, images, first, count).narrow(4, 0, kept));
  }
}

// The entries of some images along a dimension.
at::Tensor select(const at::Tensor& tensor, std::int64_t dimension, std::int64_t images,
                  const at::Tensor& wanted) {
  if (tensor.size(dimension) == images) return tensor.index_select(dimension, wanted);
  const at::Tensor both = (wanted * 2).repeat_interleave(2, 0);
  both.slice(0, 1, std::nullopt, 2).add_(1);
  return tensor.index_select(dimension, both);
}

}  // namespace

Images Slots::take(const NextImages& next) {
  const std::int64_t free = std::count(images_.begin(), images_.end(), kFree);
  if (!more_ || free == 0) return {};
  Images images = next(free);
  more_ = static_cast<std::int64_t>(images.requests.size()) == free;
  return images;
}

void Slots::place(DecodeState begun, DecodeState& state) {
  begun.image.add_(begun_);
  const auto count = static_cast<std::size_t>(begun.images());
  std::size_t placed = 0;
  for (std::size_t slot = 0; placed < count; ++slot) {
    std::size_t run = 0;  // free slots side by side
    while (placed + run < count && slot + run < images_.size() && images_[slot + run] == kFree)
      images_[slot + run++] = begun_++;
    if (run == 0) continue;
    copy_images(begun, placed, run, state, slot);
    placed += run;
    slot += run;
  }
}

void Slots::shrink(DecodeState& state) {
  if (more_ || !state.steps.is_cpu() || idle()) return;
  std::vector<std::int64_t> busy;
  for (std::size_t slot = 0; slot < images_.size(); ++slot) {
    if (images_[slot] != kFree) busy.push_back(static_cast<std::int64_t>(slot));
  }
  if (busy.size() == images_.size()) return;
  const std::int64_t images = state.images();
  const at::Tensor wanted = at::tensor(busy, at::kLong);
  for (at::Tensor* rows : rows_of(state)) *rows = select(*rows, 0, images, wanted);
  for (at::Tensor* cache : caches_of(state)) *cache = select(*cache, 2, images, wanted);
  images_.erase(std::remove(images_.begin(), images_.end(), kFree), images_.end());
}

void Slots::release(const Report& report, std::int64_t total) {
  for (const ImageReport& image : report.images) {
    if (image.steps == total) std::replace(images_.begin(), images_.end(), image.image, kFree);
  }
}

bool Slots::idle() const {
  return std::all_of(images_.begin(), images_.end(), [](std::int64_t image) { return image == kFree; });
}

DecodeState copy_of(const DecodeState& state) {
  DecodeState copy = state;
  for (at::Tensor* rows : rows_of(copy)) *rows = rows->clone();
  return copy;
}

void restore(DecodeState& state, const DecodeState& from) {
  DecodeState source = from;
  const std::vector<at::Tensor*> own = rows_of(state), rows = rows_of(source);
  for (std::size_t i = 0; i < rows.size(); ++i) own[i]->copy_(*rows[i]);
}

}  // namespace lamplighter
