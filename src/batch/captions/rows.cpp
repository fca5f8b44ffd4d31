#include "batch/captions/rows.h"

#include <algorithm>
#include <array>

#include "base/lines.h"

namespace lamplighter::captions {
namespace {

constexpr auto kNone = std::string_view::npos;

}  // namespace

bool Rows::next(Row& row, std::size_t columns) {
  while (at_ < text_.size()) {
    const std::size_t begin = at_;
    row = {};
    row.number = number_;
    if (text_[at_] == '#') {
      skip_line();
      continue;
    }
    read(row, true);
    // A text that merely begins with a quote can reach over lines up to a later one.
    const bool spans = text_.substr(begin, at_ - begin).find('\n') + 1 < at_ - begin;
    if (spans && columns != 0 && row.cells.size() != columns && has_loose_quotes_) {
      at_ = begin;
      row = {};
      row.number = number_;
      read(row, false);
    }
    const std::string_view whole = text_.substr(begin, std::min(at_, text_.size()) - begin);
    number_ += static_cast<std::size_t>(std::count(whole.begin(), whole.end(), '\n'));
    const bool is_empty = std::all_of(row.cells.begin(), row.cells.end(),
                                      [](const std::string& cell) { return is_blank(cell); });
    if (!is_empty || !row.fault.empty()) return true;
  }
  return false;
}

void Rows::skip_line() {
  at_ = std::min(text_.find('\n', at_), text_.size() - 1) + 1;
  ++number_;
}

// The end of a cell that begins at `at`: the next separator or line end.
std::size_t Rows::end_of_cell(std::size_t at) const {
  const std::array<char, 2> ends{separator_, '\n'};
  return std::min(text_.find_first_of(std::string_view(ends.data(), ends.size()), at), text_.size());
}

bool Rows::ends_cell(std::size_t at) const {
  return at >= text_.size() || text_[at] == separator_ || text_[at] == '\n' ||
         (text_[at] == '\r' && (at + 1 >= text_.size() || text_[at + 1] == '\n'));
}

// Reads a cell between quotes. Returns kNone when no quote ends it.
std::size_t Rows::read_quoted(std::size_t at, std::string& cell) const {
  while (++at < text_.size()) {
    if (text_[at] != '"') {
      cell += text_[at];
    } else if (at + 1 < text_.size() && text_[at + 1] == '"') {
      cell += text_[at++];
    } else {
      return ends_cell(at + 1) ? at + 1 : kNone;
    }
  }
  return kNone;
}

void Rows::read(Row& row, bool over_lines) {
  for (;;) {
    std::string cell;
    std::size_t end = kNone;
    if (at_ < text_.size() && text_[at_] == '"') {
      end = read_quoted(at_, cell);
      if (end != kNone && !over_lines && cell.find('\n') != std::string::npos) end = kNone;
      if (end == kNone && !has_loose_quotes_)
        row.fault = "got a quote that no quote ends, expected \"\" for a quote in a cell between quotes";
    }
    if (end == kNone) {
      end = end_of_cell(at_);
      cell = text_.substr(at_, end - at_);
      const bool ends_line = end >= text_.size() || text_[end] == '\n';
      if (ends_line && !cell.empty() && cell.back() == '\r') cell.pop_back();
      if (separator_ == '|') cell = std::string(trimmed(cell, " "));
    } else if (end < text_.size() && text_[end] == '\r') {
      ++end;
    }
    row.cells.push_back(std::move(cell));
    const bool is_last = end >= text_.size() || text_[end] == '\n';
    at_ = end + 1;
    if (is_last) return;
  }
}

}  // namespace lamplighter::captions
