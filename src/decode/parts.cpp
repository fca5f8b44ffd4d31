#include "decode/parts.h"

#include <ATen/ops/cat.h>

#include <algorithm>
#include <map>
#include <utility>

namespace lamplighter {
namespace {

// The prompts of one image of several.
Prompts of_image(const Prompts& all, std::int64_t image, std::int64_t images) {
  const auto own = [&](const at::Tensor& rows) {
    if (!rows.defined()) return rows;
    const std::int64_t each = rows.size(0) / images;
    return rows.narrow(0, image * each, each);
  };
  return {own(all.rows), own(all.valid), own(all.ids), own(all.drafter_rows), all.padded};
}

// The prompts of several images, which have the same length with their padding.
Prompts together(const std::vector<Prompts>& prompts) {
  const auto all = [&](at::Tensor Prompts::*rows) {
    std::vector<at::Tensor> parts;
    for (const Prompts& one : prompts) parts.push_back(one.*rows);
    return parts.front().defined() ? at::cat(parts) : at::Tensor();
  };
  return {all(&Prompts::rows), all(&Prompts::valid), all(&Prompts::ids), all(&Prompts::drafter_rows),
          prompts.front().padded};
}

// What stands before a position.
DecodeRequest up_to(const DecodeRequest& request, std::int64_t position) {
  DecodeRequest own{request.sampling, request.seed};
  own.kept.assign(request.kept.begin(), request.kept.begin() + position);
  return own;
}

}  // namespace

std::int64_t next_missing(const std::vector<std::int32_t>& kept, std::int64_t begin, std::int64_t total) {
  const auto count = static_cast<std::int64_t>(kept.size());
  if (begin >= count) return std::min(begin, total);
  return std::find(kept.begin() + begin, kept.end(), -1) - kept.begin();
}

std::int64_t next_given(const std::vector<std::int32_t>& kept, std::int64_t begin, std::int64_t total) {
  for (auto i = static_cast<std::size_t>(begin); i < kept.size(); ++i) {
    if (kept[i] >= 0) return static_cast<std::int64_t>(i);
  }
  return total;
}

std::int64_t count_given(const std::vector<std::int32_t>& kept) {
  return std::count_if(kept.begin(), kept.end(), [](std::int32_t code) { return code >= 0; });
}

void Parts::add(std::int64_t image, std::int64_t begin, std::int64_t end) {
  work_[parts_++] = {image, begin, end};
}

std::vector<PendingImages> Parts::begin(const PendingImages& images) {
  std::vector<PendingImages> all;
  const auto count = static_cast<std::int64_t>(images.requests.size());
  if (count > 0) all.push_back({images.prompts, {}});
  for (std::int64_t i = 0; i < count; ++i) {
    const DecodeRequest& request = images.requests[static_cast<std::size_t>(i)];
    const std::int64_t begin = next_missing(request.kept, 0, total_);
    const std::int64_t end = next_given(request.kept, begin, total_);
    all.front().requests.push_back(up_to(request, begin));
    if (end < total_) wholes_.emplace(images_, Whole{of_image(images.prompts, i, count), request});
    add(images_++, begin, end);
  }
  std::map<std::int64_t, std::vector<std::int64_t>> by_length;  // of prompts with their padding
  for (const std::int64_t image : std::exchange(waiting_, {}))
    by_length[wholes_.at(image).prompts.rows.size(1)].push_back(image);
  for (const auto& [length, waiting] : by_length) {
    std::vector<Prompts> prompts;
    all.emplace_back();
    for (const std::int64_t image : waiting) {
      const Whole& whole = wholes_.at(image);
      const std::int64_t begin = next_missing(whole.request.kept, 0, total_);
      prompts.push_back(whole.prompts);
      all.back().requests.push_back(up_to(whole.request, begin));
      add(image, begin, next_given(whole.request.kept, begin, total_));
    }
    all.back().prompts = together(prompts);
  }
  return all;
}

// Whether the part is complete.
bool Parts::gather(ImageReport& report, Part& part) {
  report.image = part.image;
  if (!std::exchange(part.is_reported, true)) report.first = part.begin;
  if (part.end == total_) return report.steps == total_;
  std::vector<std::int32_t>& codes = wholes_.at(part.image).request.kept;
  if (report.first)
    codes[static_cast<std::size_t>(part.begin)] = static_cast<std::int32_t>(report.last_token);
  const auto behind = std::lower_bound(report.positions.begin(), report.positions.end(), part.end);
  report.positions.erase(behind, report.positions.end());
  report.codes.resize(report.positions.size());
  for (std::size_t i = 0; i < report.codes.size(); ++i)
    codes[static_cast<std::size_t>(report.positions[i])] = static_cast<std::int32_t>(report.codes[i]);
  if (report.steps < part.end) return false;
  report.steps = next_missing(codes, part.end, total_);
  if (report.steps < total_) waiting_.push_back(part.image);
  return true;
}

std::vector<std::int64_t> Parts::gather(Report& report) {
  std::vector<std::int64_t> cut;
  std::vector<ImageReport> images;
  for (ImageReport& image : report.images) {
    const std::int64_t number = image.image;
    const auto part = work_.find(number);
    if (part == work_.end()) continue;  // a device reports once more of parts that are complete
    const bool is_complete = gather(image, part->second);
    if (is_complete && part->second.end < total_) cut.push_back(number);
    if (is_complete) work_.erase(part);
    if (image.steps == total_) wholes_.erase(image.image);
    images.push_back(std::move(image));
  }
  report.images = std::move(images);
  return cut;
}

std::int64_t Parts::drop(std::int64_t image) {
  wholes_.erase(image);
  waiting_.erase(std::remove(waiting_.begin(), waiting_.end(), image), waiting_.end());
  for (auto part = work_.begin(); part != work_.end(); ++part) {
    if (part->second.image != image) continue;
    const std::int64_t number = part->first;
    work_.erase(part);
    return number;
  }
  return -1;
}

}  // namespace lamplighter
