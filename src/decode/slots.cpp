#include "decode/slots.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <utility>

namespace lamplighter {
namespace {

// Images begin .. begin + count - 1 of a tensor with one or two entries each along a dimension.
at::Tensor part(const at::Tensor& tensor, std::int64_t dimension, std::int64_t images, std::size_t begin,
                std::size_t count) {
  const std::int64_t each = tensor.size(dimension) / images;
  return tensor.narrow(dimension, static_cast<std::int64_t>(begin) * each,
                       static_cast<std::int64_t>(count) * each);
}

void copy_images(DecodeState& from, std::size_t first, std::size_t count, DecodeState& to, std::size_t slot) {
  const std::int64_t images = from.run.images(), slots = to.run.images();
  const std::vector<PerImage> theirs = per_image(from), own = per_image(to);
  for (std::size_t i = 0; i < own.size(); ++i) {
    const PerImage& kind = own[i];
    at::Tensor source = part(*theirs[i].tensor, kind.images, images, first, count);
    at::Tensor target = part(*kind.tensor, kind.images, slots, slot, count);
    if (kind.cache_slots >= 0) {
      const std::int64_t kept = std::min(source.size(kind.cache_slots), target.size(kind.cache_slots));
      source = source.narrow(kind.cache_slots, 0, kept);
      target = target.narrow(kind.cache_slots, 0, kept);
    }
    target.copy_(source);
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

std::int64_t Slots::busy() const {
  return static_cast<std::int64_t>(images_.size()) - std::count(images_.begin(), images_.end(), kFree);
}

// The slot stands still like one that never held an image.
void Slots::drop(std::int64_t image, DecodeState& state) {
  const auto found = std::find(images_.begin(), images_.end(), image);
  if (found == images_.end()) return;
  const std::int64_t slot = found - images_.begin();
  *found = kFree;
  state.run.counters.image[slot].fill_(-1);
  state.run.counters.steps[slot].fill_(state.run.counters.total);
}

void Slots::widen(std::int64_t slots, DecodeState& state, const MakeState& make) {
  DecodeState wider = make(slots);
  copy_images(state, 0, images_.size(), wider, 0);
  state = std::move(wider);
  images_.resize(static_cast<std::size_t>(slots), kFree);
}

void Slots::place(DecodeState begun, DecodeState& state, const MakeState& make) {
  const std::int64_t wanted = busy() + begun.run.images();
  if (wanted > static_cast<std::int64_t>(images_.size())) widen(wanted, state, make);
  begun.run.counters.image.add_(begun_);
  const auto count = static_cast<std::size_t>(begun.run.images());
  std::size_t placed = 0;
  for (std::size_t slot = 0; placed < count; ++slot) {
    std::size_t run = 0;  // adjacent free slots
    while (placed + run < count && slot + run < images_.size() && images_[slot + run] == kFree)
      images_[slot + run++] = begun_++;
    if (run == 0) continue;
    copy_images(begun, placed, run, state, slot);
    placed += run;
    slot += run;
  }
}

void Slots::shrink(DecodeState& state) {
  if (!state.run.counters.steps.is_cpu() || idle()) return;
  std::vector<std::int64_t> busy;
  for (std::size_t slot = 0; slot < images_.size(); ++slot) {
    if (images_[slot] != kFree) busy.push_back(static_cast<std::int64_t>(slot));
  }
  if (busy.size() == images_.size()) return;
  const std::int64_t images = state.run.images();
  const at::Tensor wanted = at::tensor(busy, at::kLong);
  for (const PerImage& kind : per_image(state))
    *kind.tensor = select(*kind.tensor, kind.images, images, wanted);
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

}  // namespace lamplighter
