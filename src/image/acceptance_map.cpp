#include "image/acceptance_map.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "lamplighter/error.h"

namespace lamplighter {
namespace {

constexpr int kGap = 4;      // pixels between a picture and its grid
constexpr int kMargin = 12;  // between pairs, and around the bar
constexpr int kBarHeight = 12;
constexpr int kMostField = 24;  // width of a field of the bar
constexpr Colour kGround{255, 255, 255}, kInk{40, 40, 40};

// Ten steps of the viridis scale (Smith and van der Walt, matplotlib): even steps for the eye, also in grey
// and for colour-blind readers.
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

// Figures of 3 x 5 dots, rows from the top, the left dot in the highest bit.
constexpr std::array<std::array<unsigned, 5>, 10> kFigures{{{7, 5, 5, 5, 7},
                                                            {2, 6, 2, 2, 7},
                                                            {7, 1, 7, 4, 7},
                                                            {7, 1, 7, 1, 7},
                                                            {5, 5, 7, 1, 1},
                                                            {7, 4, 7, 1, 7},
                                                            {7, 4, 7, 5, 7},
                                                            {7, 1, 2, 2, 2},
                                                            {7, 5, 7, 5, 7},
                                                            {7, 5, 7, 1, 7}}};
constexpr int kDot = 2, kFigureWidth = 4 * kDot, kFigureHeight = 5 * kDot;
constexpr int kBelow = 2 * kMargin + kBarHeight + 2 * kDot + kFigureHeight;  // what the bar takes

int width_of(std::int64_t number) {
  return static_cast<int>(std::to_string(number).size()) * kFigureWidth - kDot;
}

void write_number(Image& image, std::int64_t number, int left, int top) {
  for (const char figure : std::to_string(number)) {
    const auto& rows = kFigures[static_cast<std::size_t>(figure - '0')];
    for (int y = 0; y < 5; ++y) {
      for (int x = 0; x < 3; ++x) {
        const bool set = (rows[static_cast<std::size_t>(y)] >> (2 - x) & 1U) != 0;
        if (set) fill(image, {left + x * kDot, top + y * kDot, kDot, kDot}, kInk);
      }
    }
    left += kFigureWidth;
  }
}

// The grid at the size of its picture.
Image paint_cells(const AcceptanceGrid& grid, std::int64_t most) {
  Image image = make_canvas(grid.picture.width, grid.picture.height, kGround);
  for (int row = 0; row < grid.rows; ++row) {
    for (int column = 0; column < grid.columns; ++column) {
      const int left = column * image.width / grid.columns, right = (column + 1) * image.width / grid.columns;
      const int top = row * image.height / grid.rows, bottom = (row + 1) * image.height / grid.rows;
      const std::ptrdiff_t cell = std::ptrdiff_t{row} * grid.columns + column;
      fill(image, {left, top, right - left, bottom - top},
           acceptance_colour(grid.committed.begin()[cell], most));
    }
  }
  return image;
}

// One field per number 1 .. most; all are numbered, or every second, third, ... where fields are narrow.
void paint_bar(Image& image, int left, int top, int room, std::int64_t most) {
  const int fields = static_cast<int>(most);
  const int width = std::max(1, std::min(kMostField, room / fields));
  const int label = width_of(most) + 4 * kDot;
  const int stride = (label + width - 1) / width;
  for (int i = 1; i <= fields; ++i, left += width) {
    fill(image, {left, top, width, kBarHeight}, acceptance_colour(i, most));
    if (i % stride != 0) continue;
    write_number(image, i, left + (width - width_of(i)) / 2, top + kBarHeight + 2 * kDot);
  }
}

void check(const std::vector<AcceptanceGrid>& grids) {
  if (grids.empty()) throw Error(ExitCode::usage, "an acceptance map needs pictures");
  for (const AcceptanceGrid& grid : grids) {
    const auto cells = static_cast<std::size_t>(grid.rows) * static_cast<std::size_t>(grid.columns);
    if (grid.rows < 1 || grid.columns < 1 || grid.committed.size() != cells ||
        *std::min_element(grid.committed.begin(), grid.committed.end()) < 1) {
      throw Error(ExitCode::usage, "an acceptance map needs one number, 1 or more, for each of " +
                                       std::to_string(grid.rows) + " x " + std::to_string(grid.columns) +
                                       " cells");
    }
  }
}

}  // namespace

Colour acceptance_colour(std::int64_t committed, std::int64_t most) {
  if (most <= 1) return kScale.front();
  const double place = static_cast<double>(committed - 1) / static_cast<double>(most - 1) *
                       static_cast<double>(kScale.size() - 1);
  const auto low = static_cast<std::size_t>(place);
  const std::size_t high = std::min(low + 1, kScale.size() - 1);
  const double share = place - static_cast<double>(low);
  Colour colour{};
  for (std::size_t i = 0; i < colour.size(); ++i) {
    colour[i] =
        static_cast<std::uint8_t>(std::lround(kScale[low][i] + share * (kScale[high][i] - kScale[low][i])));
  }
  return colour;
}

std::vector<std::int64_t> committed_with(const Statistics& statistics, std::size_t tokens) {
  std::vector<std::int64_t> counts(tokens, 1);
  for (const Cycle& cycle : statistics.cycles) {
    const auto begin = std::min(static_cast<std::size_t>(cycle.first), tokens);
    const auto end = std::min(begin + static_cast<std::size_t>(cycle.committed), tokens);
    std::fill(counts.begin() + static_cast<std::ptrdiff_t>(begin),
              counts.begin() + static_cast<std::ptrdiff_t>(end), cycle.committed);
  }
  return counts;
}

Image acceptance_map(const std::vector<AcceptanceGrid>& grids) {
  check(grids);
  std::int64_t most = 1;
  for (const AcceptanceGrid& grid : grids) {
    most = std::max(most, *std::max_element(grid.committed.begin(), grid.committed.end()));
  }
  std::vector<Image> pairs;
  pairs.reserve(grids.size());
  for (const AcceptanceGrid& grid : grids)
    pairs.push_back(contact_sheet({grid.picture, paint_cells(grid, most)}, 2, kGap));
  const Image sheet = square_sheet(pairs, kMargin);
  Image map = make_canvas(sheet.width, sheet.height + kBelow, kGround);
  paste(sheet, map, 0, 0);
  paint_bar(map, kMargin, sheet.height + kMargin, sheet.width - 2 * kMargin, most);
  return map;
}

Extent acceptance_map_extent(std::int64_t count, const Extent& picture) {
  const Extent sheet = square_sheet_extent(count, sheet_extent(2, 2, picture, kGap), kMargin);
  return {sheet.width, sheet.height + kBelow};
}

}  // namespace lamplighter
