#include <algorithm>
#include <utility>

#include "base/lines.h"
#include "base/utf8.h"
#include "batch/captions/formats.h"

namespace lamplighter::captions {
namespace {

std::vector<std::string> split(std::string_view line) {
  std::vector<std::string> cells;
  for (;;) {
    const std::size_t end = line.find('\t');
    cells.emplace_back(line.substr(0, end));
    if (end == std::string_view::npos) return cells;
    line.remove_prefix(end + 1);
  }
}

// A column's name: without blanks around it, in lower case.
std::string column_name(const std::string& cell) {
  const std::size_t begin = cell.find_first_not_of(' ');
  if (begin == std::string::npos) return "";
  std::string name = cell.substr(begin, cell.find_last_not_of(' ') + 1 - begin);
  for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return name;
}

std::vector<std::string> column_names(const std::vector<std::string>& head) {
  std::vector<std::string> names(head.size());
  std::transform(head.begin(), head.end(), names.begin(), column_name);
  return names;
}

bool is_one_of(const std::string& word, std::initializer_list<const char*> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool has_subject(const std::vector<std::string>& names) {
  return std::any_of(names.begin(), names.end(), [](const std::string& name) {
    return is_one_of(name, {"prompt", "caption", "text", "class"});
  });
}

// A cell as a request's field: the number that it spells, or its text.
Json value_of(const std::string& name, const std::string& cell) {
  if (is_one_of(name, {"prompt", "caption", "text", "negative_prompt", "id", "image_id"})) return cell;
  const bool may_be = cell[0] == '-' || (cell[0] >= '0' && cell[0] <= '9');
  Json number = may_be ? Json::parse(cell, nullptr, false) : Json();
  return number.is_number() ? number : Json(cell);
}

class Table {
 public:
  Table(std::string_view line, const std::string& where) : head_(split(line)), names_(column_names(head_)) {
    if (!has_subject(names_)) {
      throw Error(ExitCode::input, where +
                                       ": got no column of prompts, expected a first line with prompt, "
                                       "caption, text or class among its columns");
    }
    std::vector<std::string> sorted = names_;
    std::sort(sorted.begin(), sorted.end());
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice != sorted.end() && !twice->empty())
      throw Error(ExitCode::input,
                  where + ": the column " + shorten(Json(*twice).dump(), 60) + " comes twice");
    describes_images_ = std::find(names_.begin(), names_.end(), "image_id") != names_.end();
  }

  Caption read(std::string_view line, std::string where) const {
    const std::vector<std::string> cells = split(line);
    if (cells.size() > names_.size()) {
      throw Error(ExitCode::input, where + ": got " + std::to_string(cells.size()) + " columns, expected " +
                                       std::to_string(names_.size()));
    }
    Json record = Json::object(), fields = Json::object();
    for (std::size_t i = 0; i < cells.size(); ++i) {
      fields[head_[i]] = cells[i];
      const bool is_images = describes_images_ && is_one_of(names_[i], {"width", "height"});
      const bool is_text = is_one_of(names_[i], {"prompt", "caption", "text"});
      if (!is_images && (is_text || !cells[i].empty())) record[names_[i]] = value_of(names_[i], cells[i]);
    }
    Caption caption = read_record(record, std::move(where));
    caption.fields = std::move(fields);
    return caption;
  }

 private:
  std::vector<std::string> head_, names_;  // as written; what columns mean
  bool describes_images_ = false;
};

}  // namespace

bool begins_table(std::string_view text) {
  text.remove_prefix(text.rfind('\n', text.find_first_not_of(" \t\r\n\v\f")) + 1);  // blank lines
  std::string_view line = text.substr(0, text.find('\n'));
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  const std::vector<std::string> names = column_names(split(line));
  // One column alone: its name must look like one, because a caption may be a word.
  return has_subject(names) && (names.size() > 1 || line == "Prompt" || line == "prompt");
}

std::vector<Caption> read_table(std::string_view text, const std::string& name) {
  std::optional<Table> table;
  std::vector<Caption> captions;
  for_each_line(text, [&](std::string_view line, std::size_t number) {
    std::string where = name + " line " + std::to_string(number);
    if (table) {
      captions.push_back(table->read(line, std::move(where)));
    } else {
      table.emplace(line, where);
    }
  });
  return captions;
}

std::vector<Caption> read_lines(std::string_view text, const std::string& name) {
  std::vector<Caption> captions;
  for_each_line(text, [&](std::string_view line, std::size_t number) {
    captions.push_back(read_bare_text(std::string(line), name + " line " + std::to_string(number)));
  });
  return captions;
}

}  // namespace lamplighter::captions
