#include "bench/page/page.h"

#include <algorithm>
#include <utility>

#include "base/files.h"
#include "base/format.h"
#include "base/page.h"
#include "bench/page/charts_js.h"
#include "bench/page/page_html.h"
#include "bench/page/vega_js.h"

namespace lamplighter {
namespace {

struct Fact {
  const char* key;
  const char* label;
};
constexpr Fact kRun[] = {{"model", "Model"},        {"checksum", "SHA-256 of its manifest"},
                         {"device", "Device"},      {"dtype", "Precision"},
                         {"images", "Images"},      {"batch_sizes", "Images together"},
                         {"repeats", "Rounds"},     {"warmup", "Warm-up batches"},
                         {"version", "Lamplighter"}};
constexpr Fact kMachine[] = {{"cpu", "CPU"},
                             {"cpus", "CPUs"},
                             {"threads", "Threads"},
                             {"mhz", "MHz"},
                             {"max_mhz", "MHz at most"},
                             {"gpu", "GPU"},
                             {"gpu_mhz", "MHz of the GPU"},
                             {"gpu_max_mhz", "MHz of the GPU at most"},
                             {"driver", "Driver"},
                             {"cuda", "CUDA"},
                             {"torch", "Torch"},
                             {"commit", "Commit"},
                             {"load_before", "Load before"},
                             {"others", "CPU share of other programs"}};

std::string element(const std::string& name, const std::string& content) {
  return "<" + name + ">" + content + "</" + name.substr(0, name.find(' ')) + ">";
}

std::string words_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return format_fixed(value.get<double>(), 2);
  if (!value.is_array()) return value.dump();
  std::string text;
  for (const Json& one : value) text += (text.empty() ? "" : ", ") + words_of(one);
  return text;
}

// Lists the known facts.
template <std::size_t N>
std::string facts(const Json& json, const Fact (&names)[N]) {
  std::string text;
  for (const auto& [key, label] : names) {
    if (!json.is_object() || !json.contains(key) || json.at(key).is_null() || json.at(key) == "") continue;
    text += "<div>" + element("dt", label) + element("dd", html_text(words_of(json.at(key)))) + "</div>\n";
  }
  return text;
}

std::string lines(const std::vector<std::string>& texts) {
  std::string text;
  for (const std::string& line : texts) text += element("p", html_text(line)) + "\n";
  return text;
}

std::string row(const std::string& cell, const std::vector<std::string>& texts) {
  std::string text;
  for (const std::string& one : texts) text += element(cell, html_text(one));
  return element("tr", text) + "\n";
}

std::string tables(const std::vector<PageTable>& all) {
  std::string text;
  for (const PageTable& table : all) {
    std::string body;
    for (const auto& cells : table.rows) body += row("td", cells);
    text += "<div class=\"table\"><table>\n<thead>" + row("th scope=\"col\"", table.head) + "</thead>\n" +
            element("tbody", body) + "</table></div>\n";
  }
  return text;
}

const char* about(const Json& report) {
  if (report.value("synthetic", false))
    return "A row is a draft tree on random weights. Times are real; the number of accepted tokens is "
           "scripted. Brackets hold 95 % intervals.";
  return "A row is a method. S is step compression: tokens per pass of the target, 1 for ar. The speed-up is "
         "the time of ar divided by that of the method, for the same images on this machine. Brackets hold "
         "95 % intervals.";
}

// Paints one pixel per cell.
Image cells_of(const AcceptanceGrid& grid, std::int64_t most) {
  Image image{grid.columns, grid.rows, {}};
  for (const std::int64_t committed : grid.committed) {
    const Colour colour = acceptance_colour(committed, most);
    image.pixels.insert(image.pixels.end(), colour.begin(), colour.end());
  }
  return image;
}

std::string image(const Image& pixels, const std::string& what, const char* kind) {
  return "<img class=\"" + std::string(kind) + "\" alt=\"" + html_text(what) + "\" src=\"" +
         png_source(encode_png(pixels)) + "\">";
}

std::int64_t most_committed(const std::vector<PageImage>& images) {
  std::int64_t most = 1;
  for (const PageImage& image : images) {
    for (const std::int64_t committed : image.grid.committed) most = std::max(most, committed);
  }
  return most;
}

std::string legend(std::int64_t most) {
  std::string fields;
  for (std::int64_t tokens = 1; tokens <= most; ++tokens) {
    const Colour colour = acceptance_colour(tokens, most);
    fields += "<li style=\"background: rgb(" + std::to_string(colour[0]) + " " + std::to_string(colour[1]) +
              " " + std::to_string(colour[2]) + ")\"" + (5 * tokens > 3 * most ? " class=\"bright\"" : "") +
              ">" + std::to_string(tokens) + "</li>";
  }
  return "<p class=\"legend\">Tokens committed at once</p>" + element("ol class=\"legend\"", fields) + "\n";
}

std::string images(const std::vector<PageImage>& all) {
  const std::int64_t most = most_committed(all);
  std::string text = all.empty() ? "" : legend(most);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const PageImage& one = all[i];
    const bool first = i == 0 || all[i - 1].caption != one.caption || all[i - 1].seed != one.seed;
    if (first) {
      text +=
          (i == 0 ? "" : "</div>\n") +
          element("h3", html_text(one.caption) + " <small>seed " + std::to_string(one.seed) + "</small>") +
          "\n<div class=\"samples\">\n";
    }
    text += "<figure>" + image(one.grid.image, one.caption, "image") +
            image(cells_of(one.grid, most), "Acceptance map of " + one.method, "map") +
            element("figcaption", html_text(one.method) + "<br>S " + format_fixed(one.step_compression, 2)) +
            "</figure>\n";
  }
  return text + (all.empty() ? "" : "</div>\n");
}

}  // namespace

std::string bench_page(const BenchPage& page) {
  const Json& report = page.report;
  const Json machine = report.contains("environment") ? report.at("environment") : Json();
  const Json data{{"report", report}, {"scores", page.scores}, {"growth", page.growth}};
  return fill_page(kBenchPage, {{"PAGE_NAME", html_text(page.title)},
                                {"PAGE_TITLE", html_text(page.title)},
                                {"PAGE_HEADING", lines(page.heading)},
                                {"PAGE_FACTS", facts(report, kRun) + facts(machine, kMachine)},
                                {"PAGE_ABOUT", about(report)},
                                {"PAGE_TABLES", tables(page.tables)},
                                {"PAGE_REMARKS", lines(page.remarks)},
                                {"PAGE_WITHOUT", page.images.empty() ? " hidden" : ""},
                                {"PAGE_IMAGES", images(page.images)},
                                {"PAGE_DATA", script_text(data)},
                                {"PAGE_LIBRARY", kVegaScript},
                                {"PAGE_CHARTS", kChartsScript}});
}

Json read_scores(const std::string& path) {
  Json scores = parse_json(read_input(path), path, ExitCode::input);
  JsonReader reader(scores, path, ExitCode::input);
  for (const auto& [method, values] : scores.items()) {
    JsonReader metrics = reader.object(method);
    for (const auto& [metric, value] : values.items()) metrics.number(metric);
  }
  return scores;
}

Json read_growth(const std::string& path) {
  Json growth = parse_json(read_input(path), path, ExitCode::input);
  JsonReader reader(growth, path, ExitCode::input);
  JsonReader curves = reader.object("curves");
  for (const auto& [curve, axis] : {std::pair{"image", "grid"}, {"batch", "images"}, {"tree", "tree"}}) {
    for (JsonReader& point : curves.objects(curve)) {
      point.text("method");
      for (const char* key : {"S", "ms", "ms a pass", "MB"}) point.number(key);
      if (std::string(axis) == "tree") {
        point.text(axis);
      } else {
        point.integer(axis, 1);
      }
    }
  }
  return growth;
}

}  // namespace lamplighter
