#include "image/acceptance_map.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "image/acceptance_legend.h"
#include "lamplighter/error.h"

namespace lamplighter {
namespace {

constexpr int kGap = 4;      // pixels between an image and its grid
constexpr int kMargin = 12;  // pixels between pairs
constexpr Colour kGround{255, 255, 255}, kUnknown{224, 224, 224};
constexpr int kMoments = 6;  // steps that a growth strip shows

AcceptanceLegend legend_of(const std::vector<AcceptanceGrid>& grids, Typeface typeface) {
  int width = 0;
  for (const AcceptanceGrid& grid : grids) width = std::max(width, grid.image.width);
  return AcceptanceLegend(width, typeface);
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

// Adds the first `known` cells of a grid at the size of the image. A field reaches below its neighbours to
// the right and below, which cover it: readers that smooth edges show no ground between them.
void add_cells(const AcceptanceGrid& grid, std::int64_t most, std::int64_t known, int top, Figure& figure) {
  std::vector<std::int64_t> shown(grid.committed.size());  // 0: not known
  for (std::int64_t i = 0; i < known; ++i) {
    const auto cell = static_cast<std::size_t>(cell_after(grid.order, i));
    shown[cell] = grid.committed[cell];
  }
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(shown.size()); ++i) {
    const bool begins = i % grid.columns == 0;
    const std::int64_t committed = shown[static_cast<std::size_t>(i)];
    if (!begins && shown[static_cast<std::size_t>(i) - 1] == committed) continue;
    const Rectangle area = cell_of(grid, i);
    const int below = area.top + area.height + grid.image.height / grid.rows;
    figure.parts.emplace_back(Figure::Area{1.0 * area.left, 1.0 * (top + area.top),
                                           1.0 * (grid.image.width - area.left),
                                           1.0 * (std::min(below, grid.image.height) - area.top),
                                           committed == 0 ? kGround : acceptance_colour(committed, most)});
  }
}

// Places figures as contact_sheet places images.
Figure sheet_of(std::vector<Figure> figures, std::int64_t columns, int gap) {
  double width = 0, height = 0;  // of a place
  for (const Figure& figure : figures) {
    width = std::max(width, figure.width);
    height = std::max(height, figure.height);
  }
  const auto count = static_cast<std::int64_t>(figures.size());
  const Extent extent = sheet_extent(
      count, columns, {static_cast<std::int64_t>(width), static_cast<std::int64_t>(height)}, gap);
  Figure sheet{static_cast<double>(extent.width), static_cast<double>(extent.height), {}};
  for (std::int64_t i = 0; i < count; ++i) {
    Figure& figure = figures[static_cast<std::size_t>(i)];
    const std::int64_t column = i % columns, row = i / columns;
    const double left = static_cast<double>(column) * (width + gap) + std::floor((width - figure.width) / 2);
    const double top = static_cast<double>(row) * (height + gap) + std::floor((height - figure.height) / 2);
    place(std::move(figure), sheet, left, top);
  }
  return sheet;
}

// The columns of pairs, nearly as many as rows, that leave the fewest places empty.
std::int64_t pair_columns(std::int64_t count) {
  const std::int64_t square = square_columns(count);
  std::int64_t best = square;
  const auto empty = [&](std::int64_t columns) { return (columns - count % columns) % columns; };
  for (std::int64_t columns = square - 1; 2 * columns >= square; --columns) {
    if (empty(columns) < empty(best)) best = columns;
  }
  return best;
}

// An image beside its cells, above its label.
Figure pair_of(const AcceptanceGrid& grid, std::int64_t most, const AcceptanceLegend& legend) {
  const int width = grid.image.width, height = grid.image.height;
  Figure cells{1.0 * width, 1.0 * height, {}};
  add_cells(grid, most, std::int64_t{grid.rows} * grid.columns, 0, cells);
  Figure pair{2.0 * width + kGap, 1.0 * height, {}};
  pair.parts.emplace_back(Figure::Photo{0, 0, grid.image});
  place(std::move(cells), pair, width + kGap, 0);
  if (grid.label.empty()) return pair;
  for (const std::string& line : legend.wrap(grid.label, pair.width)) {
    legend.add_words(line, 0, pair.height + legend.space(), pair);
    pair.height += legend.line();
  }
  return pair;
}

// Number of tokens after every pass. The first pass is the prefill, or the first that reached this image.
std::vector<std::int64_t> tokens_by_pass(const AcceptanceGrid& grid) {
  const auto tokens = static_cast<std::int64_t>(grid.committed.size());
  std::vector<std::int64_t> known{std::min(tokens, grid.first)};
  while (known.back() < tokens) {
    const std::int64_t next = cell_after(grid.order, known.back());
    known.push_back(std::min(tokens, known.back() + grid.committed.begin()[next]));
  }
  return known;
}

// Shows the image after every sixth of its passes, above the grid of the tokens known by then.
Figure moments_of(const AcceptanceGrid& grid, std::int64_t most, const AcceptanceLegend& legend) {
  const std::vector<std::int64_t> passes = tokens_by_pass(grid);
  const int count = static_cast<int>(passes.size()), width = grid.image.width, height = grid.image.height;
  std::vector<Figure> moments;
  for (int moment = 1; moment <= kMoments; ++moment) {
    const int pass = std::max(1, count * moment / kMoments);
    const std::int64_t known = passes[static_cast<std::size_t>(pass) - 1];
    Image known_part = grid.image;
    for (std::int64_t i = known; i < std::int64_t{grid.rows} * grid.columns; ++i)
      fill(known_part, cell_of(grid, cell_after(grid.order, i)), kUnknown);
    Figure figure{1.0 * width, 2.0 * height + kGap + legend.line(), {}};
    figure.parts.emplace_back(Figure::Photo{0, 0, std::move(known_part)});
    add_cells(grid, most, known, height + kGap, figure);
    // In narrow images the words would run into each other.
    std::string words = std::string("pass ") + std::to_string(pass) + " of " + std::to_string(count);
    if (legend.width(words) > width) words = std::to_string(pass) + "/" + std::to_string(count);
    if (legend.width(words) <= width)
      legend.add_centred(words, 0, width, 2 * height + kGap + legend.space(), figure);
    moments.push_back(std::move(figure));
  }
  return sheet_of(std::move(moments), kMoments, kGap);
}

}  // namespace

AcceptanceGrid acceptance_grid(const Result& result) {
  const Codes& codes = result.codes;
  const Statistics& statistics = result.statistics;
  const auto before = static_cast<std::int64_t>(codes.preview.size());
  const std::int64_t tokens = before + static_cast<std::int64_t>(codes.positions());
  AcceptanceGrid grid{result.image, codes.rows, codes.columns,
                      std::vector<std::int64_t>(codes.positions(), 1)};
  for (const std::int64_t position : statistics.order) {
    if (position >= before) grid.order.push_back(position - before);
  }
  std::int64_t known = statistics.kept + 1;
  grid.first = known - before;
  for (const Cycle& cycle : statistics.cycles) {
    for (std::int64_t i = cycle.first; i < std::min(cycle.first + cycle.committed, tokens); ++i) {
      const std::int64_t cell = cell_after(statistics.order, i) - before;
      if (cell >= 0) grid.committed[static_cast<std::size_t>(cell)] = cycle.committed;
    }
    known += cycle.committed;
    if (grid.first < 1) grid.first = known - before;
  }
  return grid;
}

Figure acceptance_figure(const std::vector<AcceptanceGrid>& grids, const std::string& caption,
                         Typeface typeface, int columns) {
  check(grids);
  const std::int64_t most = most_of(grids);
  const AcceptanceLegend legend = legend_of(grids, typeface);
  std::vector<Figure> pairs;
  pairs.reserve(grids.size());
  for (const AcceptanceGrid& grid : grids) pairs.push_back(pair_of(grid, most, legend));
  const std::int64_t across = columns > 0 ? columns : pair_columns(static_cast<std::int64_t>(pairs.size()));
  Figure figure = sheet_of(std::move(pairs), across, kMargin);
  legend.add_below(most, caption, figure);
  return figure;
}

Figure growth_figure(const std::vector<AcceptanceGrid>& grids, const std::string& caption,
                     Typeface typeface) {
  check(grids);
  const std::int64_t most = most_of(grids);
  const AcceptanceLegend legend = legend_of(grids, typeface);
  std::vector<Figure> strips;
  strips.reserve(grids.size());
  for (const AcceptanceGrid& grid : grids) strips.push_back(moments_of(grid, most, legend));
  Figure figure = sheet_of(std::move(strips), 1, kMargin);
  legend.add_below(most, caption, figure);
  return figure;
}

Image acceptance_map(const std::vector<AcceptanceGrid>& grids, const std::string& caption) {
  return to_pixels(acceptance_figure(grids, caption, Typeface::dots));
}

Image growth_strips(const std::vector<AcceptanceGrid>& grids, const std::string& caption) {
  return to_pixels(growth_figure(grids, caption, Typeface::dots));
}

Extent acceptance_map_extent(std::int64_t count, const Extent& image) {
  const Extent sheet = sheet_extent(count, pair_columns(count), sheet_extent(2, 2, image, kGap), kMargin);
  return {sheet.width, sheet.height + AcceptanceLegend(image.width).height(1)};
}

Extent growth_strips_extent(std::int64_t count, const Extent& image) {
  const AcceptanceLegend legend(image.width);
  const Extent moment{image.width, 2 * image.height + kGap + legend.line()};
  const Extent sheet = sheet_extent(count, 1, sheet_extent(kMoments, kMoments, moment, kGap), kMargin);
  return {sheet.width, sheet.height + legend.height(1)};
}

}  // namespace lamplighter
