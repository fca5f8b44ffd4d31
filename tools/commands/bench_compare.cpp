#include "tools/commands/bench_compare.h"

#include "base/files.h"
#include "bench/report/compare.h"
#include "draft/registry.h"
#include "tools/bench_report.h"

namespace lamplighter::cli {
namespace {

std::string with_interval(const Interval& interval, int digits) {
  const std::string mean = format_fixed(interval.mean, digits);
  if (interval.count < 2) return mean;
  return mean + " [" + format_fixed(interval.low, digits) + ", " + format_fixed(interval.high, digits) + "]";
}

std::string verdict(const Change& change) {
  if (change.is_beyond_noise()) return change.ratio.mean > 1 ? "higher" : "lower";
  if (change.ratio.count < 2 && change.ratio.mean != 1) return "no interval";
  return "no change";
}

void add_row(Table& table, const std::string& method, const char* quantity, const Change& change,
             int digits) {
  if (change.before.count == 0 || change.after.count == 0) return;
  table.rows.push_back({method, quantity, with_interval(change.before, digits),
                        with_interval(change.after, digits), with_interval(change.ratio, 3),
                        verdict(change)});
}

Table table_of(const Comparison& comparison) {
  Table table{
      {"method", "quantity", "before [95 %]", "after [95 %]", "after / before [95 %]", "beyond noise"}, {}};
  for (const MethodChange& one : comparison.methods) {
    const std::string name = row_name(one.method, one.batch_size);
    add_row(table, name, "S", one.step_compression, 2);
    if (one.method != kBaseline) add_row(table, name, "speed-up", one.speedup, 2);
    add_row(table, name, "ms/token", one.token_ms, 3);
  }
  return table;
}

std::string words_of(const Json& value) {
  return value.is_null() ? "unknown" : value.is_string() ? value.get<std::string>() : value.dump();
}

Json read_json(const std::string& path) {
  return parse_json(read_input(path), path, ExitCode::input);
}

}  // namespace

void compare_benches(const std::vector<std::string>& files, bool json, Terminal& terminal) {
  const std::string &before = files.at(0), &after = files.at(1);
  const Comparison comparison = compare_runs(read_json(before), before, read_json(after), after);
  if (json) {
    terminal.result(to_json(comparison).dump());
    return;
  }
  for (const std::string& line : table_of(comparison).lines()) terminal.result(line);
  for (const std::string& name : comparison.only_before) terminal.result("only in " + before + ": " + name);
  for (const std::string& name : comparison.only_after) terminal.result("only in " + after + ": " + name);
  for (const Difference& one : comparison.differences)
    terminal.result("differs: " + one.key + ": " + words_of(one.before) + " -> " + words_of(one.after));
  terminal.log("means are geometric; images of both runs are compared in pairs");
}

}  // namespace lamplighter::cli
