#include <algorithm>
#include <charconv>
#include <functional>
#include <unordered_map>
#include <utility>

#include "base/philox.h"
#include "base/suggestion.h"
#include "batch/captions/captions.h"

namespace lamplighter {
namespace {

// Indices of the captions of an image.
using Candidates = std::vector<std::size_t>;
using Pick = std::function<std::size_t(const std::vector<Caption>& captions, const Candidates& candidates)>;

std::size_t code_points(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::size_t pick_first(const std::vector<Caption>& /*captions*/, const Candidates& candidates) {
  return candidates.front();
}

std::size_t pick_longest(const std::vector<Caption>& captions, const Candidates& candidates) {
  return *std::max_element(candidates.begin(), candidates.end(), [&](std::size_t left, std::size_t right) {
    return code_points(captions[left].request.prompt) < code_points(captions[right].request.prompt);
  });
}

Pick pick_at_random(std::uint64_t seed) {
  return [seed](const std::vector<Caption>& captions, const Candidates& candidates) {
    const std::int64_t image = captions[candidates.front()].image_id.value_or(0);
    const PhiloxBlock block =
        philox4x32({{static_cast<std::uint32_t>(image), static_cast<std::uint32_t>(image >> 32), 0, 0}},
                   static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32));
    return candidates[std::uint64_t{block.word[0]} * candidates.size() >> 32];
  };
}

Pick pick_of(const std::string& rule) {
  if (rule == "first") return pick_first;
  if (rule == "longest") return pick_longest;
  const std::string random = "random:";
  if (rule.rfind(random, 0) == 0) {
    std::uint64_t seed = 0;
    const char* const end = rule.data() + rule.size();
    const auto [stop, error] = std::from_chars(rule.data() + random.size(), end, seed);
    if (error == std::errc() && stop == end) return pick_at_random(seed);
  }
  throw Error(ExitCode::usage,
              "--select: got " + rule + ", expected " + list_of(select_rules()) + " or random:SEED");
}

}  // namespace

std::vector<std::string> select_rules() {
  return {"all", "first", "longest"};
}

std::vector<Caption> select_captions(std::vector<Caption> captions, const std::string& rule) {
  if (rule == "all") return captions;
  const Pick pick = pick_of(rule);
  std::vector<Candidates> images;
  std::unordered_map<std::int64_t, std::size_t> image_of;
  for (std::size_t i = 0; i < captions.size(); ++i) {
    std::size_t image = images.size();
    if (captions[i].image_id) image = image_of.emplace(*captions[i].image_id, image).first->second;
    if (image == images.size()) images.emplace_back();
    images[image].push_back(i);
  }
  std::vector<Caption> selected;
  selected.reserve(images.size());
  for (const Candidates& candidates : images) {
    const std::size_t chosen = candidates.size() == 1 ? candidates.front() : pick(captions, candidates);
    selected.push_back(std::move(captions[chosen]));
  }
  return selected;
}

}  // namespace lamplighter
