#pragma once

#include <optional>
#include <string>
#include <vector>

#include "image/figure.h"

namespace lamplighter {

// A bar is as long as its parts together; a part has the colour of its place. The value is printed at its
// end.
struct Bar {
  std::string name;
  std::vector<double> parts;        // 0 or more
  std::string value;                // the number, as it is printed
  std::optional<double> low, high;  // ends of the interval, shown as a line; both or none
};

// Horizontal bars on one axis, which begins at 0.
struct BarChart {
  std::string title, subtitle;
  std::string axis;                // quantity and unit
  std::vector<std::string> parts;  // names for a legend; empty: bars have one part
  std::optional<double> mark;      // a value that a line marks
  std::string mark_name;
  std::vector<Bar> bars;  // from top to bottom
  std::string footer;     // lines end with "\n"; long ones are wrapped
};

// Lays a chart out for Helvetica, 640 units wide and as high as its content.
Figure to_figure(const BarChart& chart);

// A distance of ticks of 1, 2 or 5 times a power of ten, so that at most `most` of them reach `top`; top > 0.
double tick_step(double top, int most);

}  // namespace lamplighter
