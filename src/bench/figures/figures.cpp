#include "bench/figures/figures.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/create_folder.h"
#include "base/files.h"
#include "base/format.h"
#include "bench/figures/bar_chart.h"

namespace lamplighter {
namespace {

constexpr const char* kAcceptanceMap = "acceptance-map";
constexpr std::array kStageNames{"draft", "score", "verify", "commit"};

// A number of a report that is there and finite.
std::optional<double> number_of(const Json& object, const char* key) {
  if (!object.is_object() || !object.contains(key) || !object.at(key).is_number()) return std::nullopt;
  const auto value = object.at(key).get<double>();
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

// The method, and its batch size where the run has several.
std::string name_of(const Json& row, bool several) {
  std::string name = row.at("method");
  if (several) name += ", batch " + row.at("batch_size").dump();
  return name;
}

bool has_several_sizes(const Json& rows) {
  return std::any_of(rows.begin(), rows.end(), [&](const Json& row) {
    return row.value("batch_size", 1) != rows.front().value("batch_size", 1);
  });
}

// A bar per row whose interval is known.
std::vector<Bar> interval_bars(const Json& rows, const char* key) {
  std::vector<Bar> bars;
  for (const Json& row : rows) {
    const Json interval = row.value(key, Json());
    const std::optional<double> mean = number_of(interval, "mean");
    if (!mean || *mean < 0 || interval.value("count", 0) == 0) continue;
    Bar bar{name_of(row, has_several_sizes(rows)), {*mean}, format_fixed(*mean, 2), {}, {}};
    bar.low = number_of(interval, "low");
    bar.high = number_of(interval, "high");
    if (bar.low && bar.high && *bar.low < *bar.high)
      bar.value += " [" + format_fixed(*bar.low, 2) + ", " + format_fixed(*bar.high, 2) + "]";
    else
      bar.low = bar.high = std::nullopt;
    bars.push_back(std::move(bar));
  }
  return bars;
}

// Stages that were timed, and the rest of the cycle behind them.
std::vector<double> parts_of(const Json& row, double cycle) {
  std::vector<double> parts;
  double rest = cycle;
  const Json stages = row.value("stage_ms", Json());
  for (const char* stage : kStageNames) {
    parts.push_back(std::max(0.0, number_of(stages, stage).value_or(0)));
    rest -= parts.back();
  }
  parts.push_back(std::max(0.0, rest));
  return parts;
}

BarChart speedup_chart(const Json& rows) {
  BarChart chart;
  chart.title = "Speed-up over ar";
  chart.axis = "times as fast as ar, with 95 % intervals";
  chart.mark = 1;
  chart.mark_name = "ar = 1.0";
  chart.bars = interval_bars(rows, "speedup");
  return chart;
}

BarChart compression_chart(const Json& rows) {
  BarChart chart;
  chart.title = "Step compression";
  chart.axis = "S: tokens per target pass, with 95 % intervals";
  chart.bars = interval_bars(rows, "step_compression");
  return chart;
}

BarChart stage_chart(const Json& rows) {
  BarChart chart;
  chart.title = "Time per cycle";
  chart.axis = "milliseconds per cycle, which is one pass of the target";
  bool timed = false;
  for (const Json& row : rows) {
    const std::optional<double> cycle = number_of(row, "cycle_ms");
    if (!cycle || *cycle <= 0) continue;
    timed = timed || number_of(row.value("stage_ms", Json()), "score").value_or(0) > 0;
    chart.bars.push_back({name_of(row, has_several_sizes(rows)),
                          parts_of(row, *cycle),
                          format_fixed(*cycle, *cycle < 1 ? 3 : 2) + " ms",
                          {},
                          {}});
  }
  if (timed) {
    chart.parts.assign(kStageNames.begin(), kStageNames.end());
    chart.parts.emplace_back("rest of the cycle");
    return chart;
  }
  for (Bar& bar : chart.bars) bar.parts = {bar.parts.back()};
  return chart;
}

struct ChartKind {
  const char* name;
  BarChart (*chart)(const Json& rows);
};
constexpr ChartKind kCharts[] = {
    {"speedup", speedup_chart}, {"compression", compression_chart}, {"stages", stage_chart}};

// A column per caption, a row per method. Images of a run that was stopped stand in their order.
Figure map_of(const std::vector<PageImage>& images, const std::string& footer) {
  std::size_t methods = 0;  // of the first caption
  while (methods < images.size() && images[methods].caption == images.front().caption &&
         images[methods].seed == images.front().seed)
    ++methods;
  const std::size_t captions = images.size() % methods == 0 ? images.size() / methods : 0;
  std::vector<AcceptanceGrid> grids;
  for (std::size_t i = 0; i < images.size(); ++i) {
    const PageImage& image = images[captions == 0 ? i : i % captions * methods + i / captions];
    grids.push_back(image.grid);
    grids.back().label = image.method + ", S = " + format_fixed(image.step_compression, 2) + "\n" +
                         image.caption + ", seed " + std::to_string(image.seed);
  }
  return acceptance_figure(grids, "Colours: tokens that one cycle committed.\n" + footer, Typeface::helvetica,
                           static_cast<int>(captions));
}

}  // namespace

std::vector<BenchFigure> bench_figures(const Json& report, const std::vector<PageImage>& images,
                                       const std::string& subtitle, const std::string& footer) {
  const Json rows = report.value("methods", Json::array());
  std::vector<BenchFigure> figures;
  for (const auto& [name, chart_of] : kCharts) {
    BarChart chart = chart_of(rows);
    if (chart.bars.empty()) continue;
    chart.subtitle = subtitle;
    chart.footer = footer;
    figures.push_back({name, to_figure(chart)});
  }
  if (!images.empty()) figures.push_back({kAcceptanceMap, map_of(images, footer)});
  return figures;
}

std::vector<std::string> figure_paths(const std::string& folder) {
  std::vector<std::string> paths;
  const auto add = [&](const std::string& name) {
    for (const char* ending : {".svg", ".pdf"}) paths.push_back(join_path(folder, name + ending));
  };
  for (const ChartKind& kind : kCharts) add(kind.name);
  add(kAcceptanceMap);
  return paths;
}

void write_figures(const std::string& folder, const std::vector<BenchFigure>& figures, bool overwrite) {
  create_folder(folder);
  for (const auto& [name, figure] : figures) {
    write_file(join_path(folder, name + ".svg"), to_svg(figure), overwrite);
    write_file(join_path(folder, name + ".pdf"), to_pdf(figure), overwrite);
  }
}

}  // namespace lamplighter
