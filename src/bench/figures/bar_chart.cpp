#include "bench/figures/bar_chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "base/format.h"

namespace lamplighter {
namespace {

// Units of the figure.
constexpr double kWidth = 640, kMargin = 16, kGap = 8;
constexpr double kTitle = 17, kText = 12, kSmall = 9;  // heights of lines
constexpr double kLeading = 1.25;                      // from line to line
constexpr double kNames = 220;                         // width of the names at most
constexpr double kBar = 16, kBetween = 10, kCap = 3;
constexpr int kTicks = 8;

constexpr Colour kInk{40, 40, 40}, kPale{110, 110, 110}, kGrid{225, 225, 225}, kGround{255, 255, 255};
constexpr Colour kMark{200, 60, 50};
constexpr std::array<Colour, 5> kParts{
    {{76, 120, 168}, {114, 183, 178}, {178, 121, 162}, {157, 157, 160}, {214, 214, 218}}};

double width_of(const std::string& text) {
  return width_of(text, Typeface::helvetica, kText);
}

double length_of(const Bar& bar) {
  return std::accumulate(bar.parts.begin(), bar.parts.end(), 0.0);
}

// Where the bar and its interval end.
double end_of(const Bar& bar) {
  return std::max(length_of(bar), bar.high.value_or(0));
}

// A chart in work; `top_` is where the next row begins.
class Layout {
 public:
  explicit Layout(const BarChart& chart) : chart_(chart) {
    double names = 0, values = 0, end = chart.mark.value_or(0);
    for (const Bar& bar : chart.bars) {
      names_.push_back(wrap_text(bar.name, Typeface::helvetica, kText, kNames));
      for (const std::string& line : names_.back()) names = std::max(names, width_of(line));
      values = std::max(values, width_of(bar.value));
      end = std::max(end, end_of(bar));
    }
    step_ = tick_step(end > 0 ? end : 1, kTicks);
    limit_ = step_ * std::max(1.0, std::ceil(end / step_ - 1e-9));
    left_ = kMargin + names + kGap;
    right_ = kWidth - kMargin - values - kGap;
  }

  Figure figure() {
    add_lines(chart_.title, kTitle, kInk);
    add_lines(chart_.subtitle, kText, kPale);
    add_legend();
    add_plot();
    top_ += kGap;
    if (!chart_.footer.empty()) add_lines(chart_.footer, kSmall, kPale);
    figure_.width = kWidth;
    figure_.height = top_ + kMargin;
    return std::move(figure_);
  }

 private:
  double x_of(double value) const { return left_ + (right_ - left_) * value / limit_; }

  void add_text(const std::string& words, double x, double top, double size, Colour colour,
                Anchor anchor = Anchor::start) {
    figure_.parts.emplace_back(Figure::Text{words, x, top, size, colour, anchor});
  }
  void add_area(double left, double top, double width, double height, Colour colour) {
    figure_.parts.emplace_back(Figure::Area{left, top, width, height, colour});
  }
  void add_line(double from_x, double from_y, double to_x, double to_y, double width, Colour colour) {
    figure_.parts.emplace_back(Figure::Line{from_x, from_y, to_x, to_y, width, colour});
  }

  // Lines over the whole width.
  void add_lines(const std::string& text, double size, Colour colour) {
    for (const std::string& line : wrap_text(text, Typeface::helvetica, size, kWidth - 2 * kMargin)) {
      add_text(line, kMargin, top_, size, colour);
      top_ += kLeading * size;
    }
  }

  void add_legend() {
    double left = left_;
    for (std::size_t i = 0; i < chart_.parts.size(); ++i) {
      add_area(left, top_ + kGap, kText, kText, kParts[i % kParts.size()]);
      left += kText + kGap / 2;
      add_text(chart_.parts[i], left, top_ + kGap, kText, kInk);
      left += width_of(chart_.parts[i]) + 2 * kGap;
    }
    if (!chart_.parts.empty()) top_ += kGap + kLeading * kText;
  }

  double row_height(std::size_t i) const {
    return std::max(kBar, kLeading * kText * static_cast<double>(names_[i].size())) + kBetween;
  }

  // Ticks lie behind bars, the mark before them.
  void add_plot() {
    top_ += kGap;
    if (chart_.mark) {
      add_text(chart_.mark_name, x_of(*chart_.mark), top_, kText, kMark, Anchor::middle);
      top_ += kLeading * kText;
    }
    double bottom = top_;
    for (std::size_t i = 0; i < names_.size(); ++i) bottom += row_height(i);
    for (int tick = 0; tick * step_ <= limit_ * (1 + 1e-9); ++tick) {
      const double value = tick * step_, x = x_of(value);
      add_line(x, top_, x, bottom, 0.75, kGrid);
      const int digits = std::max(0, static_cast<int>(std::ceil(-std::log10(step_) - 1e-9)));
      add_text(format_fixed(value, digits), x, bottom + kGap / 2, kText, kPale, Anchor::middle);
    }
    const double begin = top_;
    for (std::size_t i = 0; i < names_.size(); ++i) add_bar(i);
    add_line(left_, begin, left_, bottom, 1, kInk);
    if (chart_.mark) add_line(x_of(*chart_.mark), begin, x_of(*chart_.mark), bottom, 1, kMark);
    add_values(begin);
    top_ = bottom + kGap / 2 + kLeading * kText;
    add_text(chart_.axis, (left_ + right_) / 2, top_, kText, kInk, Anchor::middle);
    top_ += kLeading * kText;
  }

  void add_bar(std::size_t i) {
    const Bar& bar = chart_.bars[i];
    const double height = row_height(i), middle = top_ + height / 2;
    double line = middle - kLeading * kText * static_cast<double>(names_[i].size()) / 2 + 1;
    for (const std::string& words : names_[i]) {
      add_text(words, left_ - kGap, line, kText, kInk, Anchor::end);
      line += kLeading * kText;
    }
    double from = 0;
    for (std::size_t part = 0; part < bar.parts.size(); ++part) {
      add_area(x_of(from), middle - kBar / 2, x_of(from + bar.parts[part]) - x_of(from), kBar,
               kParts[part % kParts.size()]);
      from += bar.parts[part];
    }
    if (bar.low && bar.high) {
      add_line(x_of(*bar.low), middle, x_of(*bar.high), middle, 1.5, kInk);
      for (const double end : {*bar.low, *bar.high})
        add_line(x_of(end), middle - kCap, x_of(end), middle + kCap, 1.5, kInk);
    }
    top_ += height;
  }

  // Numbers cover the lines that they stand on.
  void add_values(double row) {
    for (std::size_t i = 0; i < names_.size(); ++i) {
      const Bar& bar = chart_.bars[i];
      const double x = x_of(end_of(bar)) + kGap, top = row + (row_height(i) - kText) / 2;
      add_area(x - kGap / 4, top, width_of(bar.value) + kGap / 2, kText, kGround);
      add_text(bar.value, x, top, kText, kInk);
      row += row_height(i);
    }
  }

  const BarChart& chart_;
  std::vector<std::vector<std::string>> names_;  // lines of every bar
  double step_ = 1, limit_ = 1, left_ = 0, right_ = 0, top_ = kMargin;
  Figure figure_;
};

}  // namespace

Figure to_figure(const BarChart& chart) {
  return Layout(chart).figure();
}

double tick_step(double top, int most) {
  const double power = std::pow(10, std::floor(std::log10(top / most)));
  for (const double step : {1.0, 2.0, 5.0}) {
    if (step * power * most >= top) return step * power;
  }
  return 10 * power;
}

}  // namespace lamplighter
