#include "tools/commands/bench_outputs.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <set>
#include <string_view>
#include <utility>

#include "base/create_folder.h"
#include "base/files.h"
#include "bench/figures/figures.h"
#include "bench/report/csv.h"
#include "lamplighter/error.h"
#include "lamplighter/outputs.h"
#include "tools/attempts.h"

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

void print(const BenchFlags& flags, const BenchResults& results, Terminal& terminal) {
  if (flags.json) return terminal.result(results.json.dump());
  for (const Table& table : results.tables) {
    if (&table != &results.tables.front()) terminal.result("");
    for (const std::string& line : table.lines()) terminal.result(line);
  }
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
  Attempts attempts(terminal);
  attempts.make([&] { print(flags, results, terminal); });
  for (const std::string& line : results.remarks) terminal.log(line);
  const auto write = [&](const std::string& path, const std::function<std::string()>& text) {
    if (!path.empty()) attempts.make([&] { write_file(path, text(), flags.overwrite); });
  };
  write(flags.export_json, [&] { return results.json.dump(1) + "\n"; });
  write(flags.export_csv, [&] { return to_csv(results.json.at("methods")); });
  write(flags.export_markdown, [&] { return markdown(results); });
  write(flags.export_html, [&] { return html(results, files, terminal); });
  if (!flags.export_svg.empty())
    attempts.make([&] { write_figures(flags.export_svg, figures(flags, results), flags.overwrite); });
  attempts.finish();
}

}  // namespace lamplighter::cli
