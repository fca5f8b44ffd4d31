#include "image/acceptance_map.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "image/lettering.h"
#include "lamplighter/error.h"

namespace lamplighter {
namespace {

constexpr int kGap = 4;      // pixels between an image and its grid
constexpr int kMargin = 12;  // pixels between pairs
constexpr Colour kGround{255, 255, 255}, kInk{40, 40, 40}, kUnknown{224, 224, 224};
constexpr int kMoments = 6;  // steps that a growth strip shows

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

// Sizes of the legend below the images. It scales with them, so that it stays readable in a thumbnail.
struct Legend {
  int dot;  // pixels

  explicit Legend(std::int64_t width) : dot(static_cast<int>(std::max<std::int64_t>(1, width / 128))) {}
  int margin() const { return 12 * dot; }
  int bar() const { return 12 * dot; }
  int field() const { return 24 * dot; }  // width of a field at most
  int space() const { return 4 * dot; }   // above text
  int line() const { return kLetterHeight * dot + space(); }
  int height(bool words) const { return 2 * margin() + bar() + line() * (words ? 2 : 1); }
};

Legend legend_of(const std::vector<AcceptanceGrid>& grids) {
  int width = 0;
  for (const AcceptanceGrid& grid : grids) width = std::max(width, grid.image.width);
  return Legend(width);
}

void check(const std::vector<AcceptanceGrid>& grids) {
  if (grids.empty()) throw Error(ExitCode::usage, "an acceptance map needs images");
  for (const AcceptanceGrid& grid : grids) {
    const auto cells = static_cast<std::size_t>(grid.rows) * static_cast<std::size_t>(grid.columns);
    if (grid.rows < 1 || grid.columns < 1 || grid.committed.size() != cells ||
        (!grid.order.empty() && grid.order.size() != cells) ||
        *std::min_element(grid.committed.begin(), grid.committed.end()) < 1) {
      throw Error(ExitCode::usage, "an acceptance map needs one number, 1 or more, for each of " +
                                       std::to_string(grid.rows) + " x " + std::to_string(grid.columns) +
                                       " cells");
    }
  }
}

std::int64_t most_of(const std::vector<AcceptanceGrid>& grids) {
  std::int64_t most = 1;
  for (const AcceptanceGrid& grid : grids)
    most = std::max(most, *std::max_element(grid.committed.begin(), grid.committed.end()));
  return most;
}

// Pixels of a cell when the grid is as large as its image.
Rectangle cell_of(const AcceptanceGrid& grid, std::int64_t cell) {
  const int row = static_cast<int>(cell) / grid.columns, column = static_cast<int>(cell) % grid.columns;
  const int width = grid.image.width, height = grid.image.height;
  const int left = column * width / grid.columns, right = (column + 1) * width / grid.columns;
  const int top = row * height / grid.rows, bottom = (row + 1) * height / grid.rows;
  return {left, top, right - left, bottom - top};
}

// The cell that is generated after `made` others.
std::int64_t cell_after(const std::vector<std::int64_t>& order, std::int64_t made) {
  return order.empty() ? made : order[static_cast<std::size_t>(made)];
}

// Paints the first `known` cells of a grid at the size of the image.
Image paint_cells(const AcceptanceGrid& grid, std::int64_t most, std::int64_t known) {
  Image image = make_canvas(grid.image.width, grid.image.height, kGround);
  for (std::int64_t i = 0; i < known; ++i) {
    const std::int64_t cell = cell_after(grid.order, i);
    fill(image, cell_of(grid, cell), acceptance_colour(grid.committed.begin()[cell], most));
  }
  return image;
}
Image paint_cells(const AcceptanceGrid& grid, std::int64_t most) {
  return paint_cells(grid, most, std::int64_t{grid.rows} * grid.columns);
}

// Number of tokens after every pass. The first pass is the prefill.
std::vector<std::int64_t> tokens_by_pass(const AcceptanceGrid& grid) {
  std::vector<std::int64_t> known{1};
  const auto tokens = static_cast<std::int64_t>(grid.committed.size());
  while (known.back() < tokens) {
    const std::int64_t next = cell_after(grid.order, known.back());
    known.push_back(std::min(tokens, known.back() + grid.committed.begin()[next]));
  }
  return known;
}

// Shows the image after every sixth of its passes, above the grid of the tokens known by then.
Image paint_moments(const AcceptanceGrid& grid, std::int64_t most, const Legend& legend) {
  const std::vector<std::int64_t> passes = tokens_by_pass(grid);
  const int count = static_cast<int>(passes.size()), width = grid.image.width, height = grid.image.height;
  std::vector<Image> moments;
  for (int moment = 1; moment <= kMoments; ++moment) {
    const int pass = std::max(1, count * moment / kMoments);
    const std::int64_t known = passes[static_cast<std::size_t>(pass) - 1];
    Image known_part = grid.image;
    for (std::int64_t i = known; i < std::int64_t{grid.rows} * grid.columns; ++i)
      fill(known_part, cell_of(grid, cell_after(grid.order, i)), kUnknown);
    Image image = make_canvas(width, 2 * height + kGap + legend.line(), kGround);
    paste(known_part, image, 0, 0);
    paste(paint_cells(grid, most, known), image, 0, height + kGap);
    const std::string words = "pass " + std::to_string(pass) + " of " + std::to_string(count);
    write_text(image, words, (width - text_width(words, legend.dot)) / 2, 2 * height + kGap + legend.space(),
               kInk, legend.dot);
    moments.push_back(std::move(image));
  }
  return contact_sheet(moments, kMoments, kGap);
}

// Paints a field per number 1 .. most. Where fields are narrow, only every second, third, ... is labelled.
void paint_bar(Image& image, int top, std::int64_t most, const Legend& legend) {
  const int fields = static_cast<int>(most), room = image.width - 2 * legend.margin();
  const int width = std::max(1, std::min(legend.field(), room / fields));
  const int stride = (text_width(std::to_string(most), legend.dot) + legend.space() + width - 1) / width;
  int left = legend.margin();
  for (int i = 1; i <= fields; ++i, left += width) {
    fill(image, {left, top, width, legend.bar()}, acceptance_colour(i, most));
    if (i % stride != 0) continue;
    const std::string number = std::to_string(i);
    write_text(image, number, left + (width - text_width(number, legend.dot)) / 2,
               top + legend.bar() + legend.space(), kInk, legend.dot);
  }
}

// Adds the bar and a caption below a sheet.
Image with_legend(const Image& sheet, const std::vector<AcceptanceGrid>& grids, const std::string& caption) {
  const Legend legend = legend_of(grids);
  Image image = make_canvas(sheet.width, sheet.height + legend.height(!caption.empty()), kGround);
  paste(sheet, image, 0, 0);
  const int top = sheet.height + legend.margin();
  paint_bar(image, top, most_of(grids), legend);
  write_text(image, caption, legend.margin(), top + legend.bar() + legend.line() + legend.space(), kInk,
             legend.dot);
  return image;
}

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

std::vector<std::int64_t> committed_with(const Statistics& statistics, std::size_t tokens) {
  std::vector<std::int64_t> counts(tokens, 1);
  for (const Cycle& cycle : statistics.cycles) {
    const auto begin = std::min(static_cast<std::size_t>(cycle.first), tokens);
    const auto end = std::min(begin + static_cast<std::size_t>(cycle.committed), tokens);
    for (std::size_t i = begin; i < end; ++i) {
      const std::int64_t cell = cell_after(statistics.order, static_cast<std::int64_t>(i));
      counts[static_cast<std::size_t>(cell)] = cycle.committed;
    }
  }
  return counts;
}

Image acceptance_map(const std::vector<AcceptanceGrid>& grids, const std::string& caption) {
  check(grids);
  std::vector<Image> pairs;
  pairs.reserve(grids.size());
  for (const AcceptanceGrid& grid : grids)
    pairs.push_back(contact_sheet({grid.image, paint_cells(grid, most_of(grids))}, 2, kGap));
  return with_legend(square_sheet(pairs, kMargin), grids, caption);
}

Image growth_strips(const std::vector<AcceptanceGrid>& grids, const std::string& caption) {
  check(grids);
  std::vector<Image> strips;
  strips.reserve(grids.size());
  for (const AcceptanceGrid& grid : grids)
    strips.push_back(paint_moments(grid, most_of(grids), legend_of(grids)));
  return with_legend(contact_sheet(strips, 1, kMargin), grids, caption);
}

Extent acceptance_map_extent(std::int64_t count, const Extent& image) {
  const Extent sheet = square_sheet_extent(count, sheet_extent(2, 2, image, kGap), kMargin);
  return {sheet.width, sheet.height + Legend(image.width).height(true)};
}

Extent growth_strips_extent(std::int64_t count, const Extent& image) {
  const Legend legend(image.width);
  const Extent moment{image.width, 2 * image.height + kGap + legend.line()};
  const Extent sheet = sheet_extent(count, 1, sheet_extent(kMoments, kMoments, moment, kGap), kMargin);
  return {sheet.width, sheet.height + legend.height(true)};
}

}  // namespace lamplighter
