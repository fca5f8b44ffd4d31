#include "bench/report/csv.h"

#include <map>
#include <vector>

namespace lamplighter {
namespace {

// Columns in order of first appearance.
using Columns = std::vector<std::string>;
using Row = std::map<std::string, std::string>;

std::string cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quotes = "\"";
  for (const char c : text) quotes += c == '"' ? "\"\"" : std::string(1, c);
  return quotes + "\"";
}

void flatten(const Json& object, const std::string& before, Columns& columns, Row& row) {
  for (const auto& [key, value] : object.items()) {
    const std::string name = before + key;
    if (value.is_object()) {
      flatten(value, name + ".", columns, row);
      continue;
    }
    if (value.is_array() && !value.empty() && value.front().is_object()) continue;
    bool known = false;
    for (const std::string& column : columns) known = known || column == name;
    if (!known) columns.push_back(name);
    row[name] = value.is_null() ? "" : value.is_string() ? value.get<std::string>() : value.dump();
  }
}

}  // namespace

std::string to_csv(const Json& rows) {
  Columns columns;
  std::vector<Row> flat;
  for (const Json& row : rows) flatten(row, "", columns, flat.emplace_back());
  std::string text;
  for (const std::string& column : columns) text += (text.empty() ? "" : ",") + cell(column);
  text += "\r\n";
  for (Row& row : flat) {
    std::string line;
    for (const std::string& column : columns)
      line += (&column == &columns.front() ? "" : ",") + cell(row[column]);
    text += line + "\r\n";
  }
  return text;
}

}  // namespace lamplighter
