#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

// Rows of the texts that hold tables.
namespace lamplighter::captions {

struct Row {
  std::vector<std::string> cells;
  std::size_t number = 0;  // of its first line
  std::string fault;       // why it cannot be read
};

// Reads rows of separated cells. A cell between quotes may hold separators, line ends and doubled quotes.
// Bars have blanks around them.
class Rows {
 public:
  // In tab-separated texts, and where commas do not separate, a cell may merely begin with a quote.
  Rows(std::string_view text, char separator, bool has_loose_quotes)
      : text_(text), separator_(separator), has_loose_quotes_(has_loose_quotes) {}

  // Reads the next row that has content. `columns` is the number that it should have; 0: unknown.
  bool next(Row& row, std::size_t columns);

 private:
  void skip_line();
  std::size_t end_of_cell(std::size_t at) const;
  bool ends_cell(std::size_t at) const;
  std::size_t read_quoted(std::size_t at, std::string& cell) const;
  void read(Row& row, bool over_lines);

  std::string_view text_;
  char separator_;
  bool has_loose_quotes_;
  std::size_t at_ = 0, number_ = 1;
};

// Whether a text begins with a table of a document: the names of columns between bars, and below them a line
// of hyphens and bars, as in Markdown.
bool begins_grid(std::string_view text);

// Reads the rows of that table, the names first. A bar in a cell has a backslash in front of it. Lines behind
// the table are faults, except "(2 rows)", which databases count.
std::vector<Row> grid_rows(std::string_view text);

// Whether a line only separates rows: "|---|:--:|", "----+----".
bool is_rule(std::string_view line);

}  // namespace lamplighter::captions
