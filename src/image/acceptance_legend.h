#pragma once

#include <cstdint>
#include <string>

#include "image/figure.h"

namespace lamplighter {

inline constexpr Colour kAcceptanceInk{40, 40, 40};  // of words

// Colour of a cell, from dark (1) to bright (`most`). 1 <= committed <= most.
Colour acceptance_colour(std::int64_t committed, std::int64_t most);

// Sizes of the legend below images, in units of the figure. It scales with their width, so that it stays
// readable in a thumbnail.
class AcceptanceLegend {
 public:
  explicit AcceptanceLegend(std::int64_t width, Typeface typeface = Typeface::dots);

  int letters() const;                    // height of a line of words
  int space() const { return 4 * dot_; }  // above words
  int line() const { return letters() + space(); }
  int height(std::size_t lines) const;  // with a caption of this many lines
  int width(const std::string& words) const;
  std::vector<std::string> wrap(const std::string& text, double width) const;

  // Adds one line in the middle of a range.
  void add_centred(const std::string& words, int left, int width, int top, Figure& figure) const;
  // Adds one line.
  void add_words(const std::string& words, double left, double top, Figure& figure) const;
  // Adds a bar with a numbered field for each of 1 .. most, and the caption, wrapped, below a figure.
  void add_below(std::int64_t most, const std::string& caption, Figure& figure) const;

 private:
  int margin() const { return 12 * dot_; }
  int bar() const { return 12 * dot_; }
  int field() const { return 24 * dot_; }  // width of a field at most
  void add_bar(int top, std::int64_t most, Figure& figure) const;

  int dot_;
  Typeface typeface_;
};

}  // namespace lamplighter
