#include <algorithm>
#include <utility>

#include "base/lines.h"
#include "base/message.h"
#include "batch/captions/rows.h"

namespace lamplighter::captions {
namespace {

constexpr auto kNone = std::string_view::npos;

// The cells between bars. Bars at both ends of a line belong to no cell.
std::vector<std::string> cells_of(std::string_view line) {
  line = trimmed(line);
  if (!line.empty() && line.front() == '|') line.remove_prefix(1);
  const bool is_closed =
      !line.empty() && line.back() == '|' && (line.size() < 2 || line[line.size() - 2] != '\\');
  if (is_closed) line.remove_suffix(1);
  std::vector<std::string> cells(1);
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (line[at] == '\\' && line.substr(at + 1, 1) == "|") {
      cells.back() += line[++at];
    } else if (line[at] == '|') {
      cells.emplace_back();
    } else {
      cells.back() += line[at];
    }
  }
  for (std::string& cell : cells) cell = std::string(trimmed(cell));
  return cells;
}

// "**Prompt**" and "`prompt`" name the column "prompt".
void remove_emphasis(std::string& cell) {
  cell = std::string(trimmed(cell, "*_`"));
}

// The columns of a line between rows.
std::size_t columns_of_rule(std::string_view line) {
  line = trimmed(line);
  const auto is_end = [](char c) { return c == '|' || c == '+'; };
  const auto ends = std::count_if(line.begin(), line.end(), is_end);
  return static_cast<std::size_t>(ends + 1 - (is_end(line.front()) ? 1 : 0) - (is_end(line.back()) ? 1 : 0));
}

// "(2 rows)".
bool is_count(std::string_view line) {
  line = trimmed(line);
  if (line.empty() || line.front() != '(') return false;
  const std::size_t end = line.find_first_not_of("0123456789", 1);
  return end != kNone && end > 1 && (line.substr(end) == " rows)" || line.substr(end) == " row)");
}

}  // namespace

bool is_rule(std::string_view line) {
  line = trimmed(line);
  return line.find_first_not_of("-=+|: \t") == kNone && line.find_first_of("-=") != kNone &&
         line.find_first_of("|+") != kNone;
}

bool begins_grid(std::string_view text) {
  const std::size_t end = text.find('\n');
  if (end == kNone) return false;
  const std::string_view head = text.substr(0, end);
  const std::string_view rule = text.substr(end + 1, text.find('\n', end + 1) - end - 1);
  return !is_rule(head) && head.find('|') != kNone && is_rule(rule) &&
         cells_of(head).size() == columns_of_rule(rule);
}

std::vector<Row> grid_rows(std::string_view text) {
  std::vector<Row> rows;
  for_each_line(text, [&](std::string_view line, std::size_t number) {
    if (number == 2 || trimmed(line).front() == '#' || is_count(line)) return;
    Row row;
    row.number = number;
    row.cells = cells_of(line);
    if (is_rule(line)) {
      row.fault = "got " + excerpt_of(line) + ", expected one table in the file";
    } else if (line.find('|') == kNone) {
      row.fault = "got " + excerpt_of(line) + " behind a table, expected a row between bars";
    }
    if (rows.empty()) std::for_each(row.cells.begin(), row.cells.end(), remove_emphasis);
    rows.push_back(std::move(row));
  });
  return rows;
}

}  // namespace lamplighter::captions
