#include "image/acceptance_legend.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "image/lettering.h"

namespace lamplighter {
namespace {

// Ten steps of the viridis scale (Smith and van der Walt, matplotlib), which is perceptually uniform, also in
// grey and for colour-blind readers.
constexpr std::array<Colour, 10> kScale{{{68, 1, 84},
                                         {72, 40, 120},
                                         {62, 74, 137},
                                         {49, 104, 142},
                                         {38, 130, 142},
                                         {31, 158, 137},
                                         {53, 183, 121},
                                         {109, 205, 89},
                                         {180, 222, 44},
                                         {253, 231, 37}}};

}  // namespace

Colour acceptance_colour(std::int64_t committed, std::int64_t most) {
  if (most <= 1) return kScale.front();
  const double position = static_cast<double>(committed - 1) / static_cast<double>(most - 1) *
                          static_cast<double>(kScale.size() - 1);
  const auto low = static_cast<std::size_t>(position);
  const std::size_t high = std::min(low + 1, kScale.size() - 1);
  const double share = position - static_cast<double>(low);
  Colour colour{};
  for (std::size_t i = 0; i < colour.size(); ++i) {
    colour[i] =
        static_cast<std::uint8_t>(std::lround(kScale[low][i] + share * (kScale[high][i] - kScale[low][i])));
  }
  return colour;
}

AcceptanceLegend::AcceptanceLegend(std::int64_t width, Typeface typeface)
    : dot_(static_cast<int>(std::max<std::int64_t>(1, width / 128))), typeface_(typeface) {}

int AcceptanceLegend::letters() const {
  return kLetterHeight * dot_;
}

int AcceptanceLegend::height(std::size_t lines) const {
  return 2 * margin() + bar() + line() * (1 + static_cast<int>(lines));
}

int AcceptanceLegend::width(const std::string& words) const {
  return static_cast<int>(std::ceil(width_of(words, typeface_, letters())));
}

std::vector<std::string> AcceptanceLegend::wrap(const std::string& text, double width) const {
  return wrap_text(text, typeface_, letters(), width);
}

// Letters of dots begin at whole pixels.
void AcceptanceLegend::add_centred(const std::string& words, int left, int range, int top,
                                   Figure& figure) const {
  const int letters_wide = width(words), before = (range - letters_wide) / 2;
  figure.parts.emplace_back(Figure::Text{words, left + before + letters_wide / 2.0, 1.0 * top,
                                         1.0 * letters(), kAcceptanceInk, Anchor::middle});
}

void AcceptanceLegend::add_words(const std::string& words, double left, double top, Figure& figure) const {
  figure.parts.emplace_back(Figure::Text{words, left, top, 1.0 * letters(), kAcceptanceInk});
}

// Where fields are narrow, only every second, third, ... is labelled.
void AcceptanceLegend::add_bar(int top, std::int64_t most, Figure& figure) const {
  const int fields = static_cast<int>(most), room = static_cast<int>(figure.width) - 2 * margin();
  const int wide = std::max(1, std::min(field(), room / fields));
  const int stride = (width(std::to_string(most)) + space() + wide - 1) / wide;
  int left = margin();
  for (int i = 1; i <= fields; ++i, left += wide) {
    figure.parts.emplace_back(
        Figure::Area{1.0 * left, 1.0 * top, 1.0 * wide, 1.0 * bar(), acceptance_colour(i, most)});
    if (i % stride == 0) add_centred(std::to_string(i), left, wide, top + bar() + space(), figure);
  }
}

void AcceptanceLegend::add_below(std::int64_t most, const std::string& caption, Figure& figure) const {
  std::vector<std::string> lines;
  if (!caption.empty()) lines = wrap(caption, figure.width - 2 * margin());
  int top = static_cast<int>(figure.height) + margin();
  figure.height += height(lines.size());
  add_bar(top, most, figure);
  top += bar() + line() + space();
  for (const std::string& words : lines) {
    add_words(words, margin(), top, figure);
    top += line();
  }
}

}  // namespace lamplighter
