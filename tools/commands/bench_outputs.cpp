#include "bench_outputs.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <string_view>
#include <utility>

#include "base/create_folder.h"
#include "base/files.h"
#include "bench/figures/figures.h"
#include "bench/report/csv.h"
#include "lamplighter/error.h"
#include "lamplighter/outputs.h"

namespace lamplighter::cli {
namespace {

// Names the model and the machine as precisely as it is known.
std::string title(const Json& json) {
  std::string machine = json.at("device");
  for (const char* key : {"cpu", "gpu"}) {
    const std::string name = json.value("environment", Json::object()).value(key, "");
    if (!name.empty()) machine = name;
  }
  return json.at("model").get<std::string>() + " on " + machine;
}

std::string html(const BenchResults& results, const PageFiles& files, Terminal& terminal) {
  BenchPage page{title(results.json), results.heading, {},           results.remarks,
                 results.json,        files.scores,    files.growth, results.images};
  for (const Table& table : results.tables) page.tables.push_back({table.head, table.rows});
  for (const auto& [name, values] : files.scores.items()) {
    const Json& methods = results.json.at("methods");
    if (std::none_of(methods.begin(), methods.end(),
                     [&, &method = name](const Json& one) { return one.at("method") == method; }))
      terminal.log("note: scores of " + name + " are left out: this run has no such method");
  }
  return bench_page(page);
}

std::string markdown(const BenchResults& results) {
  std::string text;
  for (const std::string& line : results.heading) text += line + "\n\n";
  for (const Table& table : results.tables) text += table.markdown() + "\n";
  for (const std::string& line : results.remarks) text += line + "\n\n";
  text.pop_back();
  return text;
}

// Figures with the lines above the tables and the command below them.
std::vector<BenchFigure> figures(const BenchFlags& flags, const BenchResults& results) {
  std::string footer;
  for (const std::string& line : results.heading) footer += line + "\n";
  return bench_figures(results.json, results.images, title(results.json), footer + flags.command);
}

// Flags that change no result.
constexpr std::array<std::string_view, 12> kSilent{
    "--export-json", "--export-csv", "--export-markdown", "--export-html", "--export-svg", "--scores",
    "--growth",      "--save-table", "--overwrite",       "--json",        "--quiet",      "--verbose"};

// A word of a shell's command line.
std::string shell_word(const std::string& text) {
  constexpr std::string_view plain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+,-./:=@_";
  if (!text.empty() && text.find_first_not_of(plain) == std::string::npos) return text;
  std::string word = "'";
  for (const char letter : text) word += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return word + "'";
}

}  // namespace

PageFiles read_page_files(const BenchFlags& flags) {
  PageFiles files;
  if (!flags.scores.empty()) files.scores = read_scores(flags.scores);
  if (!flags.growth.empty()) files.growth = read_growth(flags.growth);
  return files;
}

std::string command_line(const CLI::App& command) {
  std::string line = "lamplighter " + command.get_name();
  std::set<std::string> given;
  for (const CLI::Option* option : command.parse_order()) {
    const std::string name = option->get_name();
    if (std::find(kSilent.begin(), kSilent.end(), name) != kSilent.end() || !given.insert(name).second)
      continue;
    if (option->get_expected_max() == 0) {
      line += " " + name;
    } else {
      for (const std::string& value : option->results()) line += " " + name + " " + shell_word(value);
    }
  }
  return line;
}

void check_bench_outputs(const BenchFlags& flags) {
  std::vector<std::string> files;
  for (const std::string& file :
       {flags.export_json, flags.export_csv, flags.export_markdown, flags.export_html}) {
    if (!file.empty()) files.push_back(file);
  }
  std::vector<std::string> all = files;
  if (!flags.export_svg.empty()) {
    check_folder(flags.export_svg);
    const std::vector<std::string> paths = figure_paths(flags.export_svg);
    all.insert(all.end(), paths.begin(), paths.end());
    if (std::filesystem::exists(flags.export_svg)) files.insert(files.end(), paths.begin(), paths.end());
  }
  check_distinct(all);
  for (const std::string& file : files) check_output(file, flags.overwrite);
}

void give_bench_results(const BenchFlags& flags, const BenchResults& results, const PageFiles& files,
                        Terminal& terminal) {
  for (const std::string& line : results.heading) terminal.log(line);
  if (flags.json) {
    terminal.result(results.json.dump());
  } else {
    for (const Table& table : results.tables) {
      if (&table != &results.tables.front()) terminal.result("");
      for (const std::string& line : table.lines()) terminal.result(line);
    }
  }
  for (const std::string& line : results.remarks) terminal.log(line);
  if (!flags.export_json.empty()) write_file(flags.export_json, results.json.dump(1) + "\n", flags.overwrite);
  if (!flags.export_csv.empty())
    write_file(flags.export_csv, to_csv(results.json.at("methods")), flags.overwrite);
  if (!flags.export_markdown.empty()) write_file(flags.export_markdown, markdown(results), flags.overwrite);
  if (!flags.export_html.empty())
    write_file(flags.export_html, html(results, files, terminal), flags.overwrite);
  if (!flags.export_svg.empty()) write_figures(flags.export_svg, figures(flags, results), flags.overwrite);
}

}  // namespace lamplighter::cli
