#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "base/format.h"
#include "base/lines.h"
#include "base/message.h"
#include "base/utf8.h"
#include "batch/captions/formats.h"
#include "batch/captions/rows.h"
#include "pipeline/metadata/request_fields.h"

namespace lamplighter::captions {
namespace {

constexpr auto kNone = std::string_view::npos;

// Spreadsheets write "sep=;" above a table.
std::string_view without_separator_line(std::string_view text, std::size_t& lines) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  if (end == kNone || line.substr(0, 4) != "sep=" || line.find_first_not_of("\r", 5) != kNone) return text;
  ++lines;
  return text.substr(end + 1);
}

std::vector<std::string> names_of(const std::vector<std::string>& head) {
  std::vector<std::string> names(head.size());
  std::transform(head.begin(), head.end(), names.begin(), field_name);
  return names;
}

bool has_subject(const std::vector<std::string>& names) {
  return !find_prompt_name(names).empty() || std::find(names.begin(), names.end(), "class") != names.end();
}

// Whether a cell can name a column: a word or three.
bool is_name(std::string_view cell) {
  constexpr std::size_t kMost = 40;
  return cell.size() <= kMost && std::count(cell.begin(), cell.end(), ' ') < 3 &&
         cell.find_first_of("\n.!?\"'") == kNone && (cell.empty() || cell.front() != ' ');
}

// Whether the first row heads a table. Commas are also in captions: then all cells have to be names, and the
// second row has to have as many.
bool heads_table(std::string_view text, char separator, const std::string& column) {
  Rows rows(text, separator, separator == '\t');
  Row head, second;
  if (!rows.next(head, 0) || !head.fault.empty()) return false;
  const std::vector<std::string> names = names_of(head.cells);
  if (!column.empty()) {
    return std::find(head.cells.begin(), head.cells.end(), column) != head.cells.end() ||
           std::find(names.begin(), names.end(), field_name(column)) != names.end();
  }
  if (!has_subject(names)) return false;
  // A single column needs the exact name: any other word may be a caption.
  if (names.size() == 1) return head.cells[0] == "Prompt" || head.cells[0] == "prompt";
  if (separator == '\t') return true;
  return std::all_of(head.cells.begin(), head.cells.end(), is_name) &&
         (!rows.next(second, names.size()) || second.cells.size() == names.size());
}

class Table {
 public:
  Table(const Row& row, const Source& source) : source_(source), head_(row.cells), names_(names_of(head_)) {
    const std::string where = source.line(row.number);
    const std::string& column = source.options.column;
    const auto exact = std::find(head_.begin(), head_.end(), column);
    const auto similar = std::find(names_.begin(), names_.end(), field_name(column));
    prompt_ = column.empty()            ? find_prompt_name(names_)
              : exact != head_.end()    ? field_name(column)
              : similar != names_.end() ? *similar
                                        : "";
    if (prompt_.empty() && (!column.empty() || !has_subject(names_))) {
      throw Error(ExitCode::input,
                  where + ": got no column " + (column.empty() ? "of prompts" : quote(column)) + " among " +
                      list_names(head_) +
                      ", expected a first line with prompt, caption, text or class, or --column NAME");
    }
    std::vector<std::string> sorted = names_;
    std::sort(sorted.begin(), sorted.end());
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end(),
                                          [](const auto& a, const auto& b) { return !a.empty() && a == b; });
    if (twice != sorted.end())
      throw Error(ExitCode::input,
                  where + ": duplicate column " +
                      shorten(Json(*twice).dump(-1, ' ', false, Json::error_handler_t::replace), 60));
  }

  std::size_t columns() const { return names_.size(); }

  Entry read(Row row) const {
    const std::string where = source_.line(row.number);
    if (!row.fault.empty()) return make_failure(where, row.fault);
    while (row.cells.size() > names_.size() && row.cells.back().empty()) row.cells.pop_back();
    if (row.cells.size() > names_.size()) {
      return make_failure(where, "got " + counted(row.cells.size(), "column") + ", expected " +
                                     std::to_string(names_.size()));
    }
    Json values = Json::object(), fields = Json::object();
    auto& named = values.get_ref<Json::object_t&>();  // names are unique: no search for them
    auto& written = fields.get_ref<Json::object_t&>();
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      if (!head_[i].empty()) written.emplace_back(head_[i], row.cells[i]);
      const bool is_prompt = names_[i] == prompt_;
      if (names_[i].empty() || (row.cells[i].empty() && !is_prompt)) continue;
      named.emplace_back(names_[i], is_prompt ? Json(row.cells[i]) : value_of(names_[i], row.cells[i]));
    }
    const bool has_prompt = !prompt_.empty() && values.contains(prompt_);
    Entry entry = make_record(Entry::Form::data, where, std::move(values), has_prompt ? prompt_ : "");
    if (!has_prompt) entry.prompt_key.clear();
    entry.fields = std::move(fields);
    return entry;
  }

 private:
  const Source& source_;
  std::vector<std::string> head_, names_;  // as written; field names
  std::string prompt_;
};

// Ids that count within categories get the category's name in front.
void join_categories(std::vector<Entry>& entries) {
  std::set<std::string> ids, joined;
  const auto text = [](const Json& record, const char* key) {
    const auto found = record.find(key);
    return found == record.end() ? "" : found->is_string() ? found->get<std::string>() : to_text(*found);
  };
  for (const Entry& entry : entries) {
    if (entry.failure || text(entry.record, "id").empty() || text(entry.record, "category").empty()) return;
    ids.insert(text(entry.record, "id"));
    joined.insert(text(entry.record, "category") + "-" + text(entry.record, "id"));
  }
  if (ids.size() == entries.size() || joined.size() != entries.size()) return;
  for (Entry& entry : entries)
    entry.record["id"] = text(entry.record, "category") + "-" + text(entry.record, "id");
}

}  // namespace

char find_separator(std::string_view text, const std::string& column) {
  std::size_t lines = 0;
  const std::string_view table = without_separator_line(text, lines);
  if (lines > 0) return text[4];
  for (const char separator : {'\t', ',', ';', '|'}) {
    if (heads_table(table, separator, column)) return separator;
  }
  return 0;
}

void read_table(const Source& source, char separator, const TakeEntry& take) {
  Source body = source;
  body.text = without_separator_line(source.text, body.options.first_line);
  Rows rows(body.text, separator, separator == '\t' && !ends_with(source.name, ".csv"));
  Row row;
  if (!rows.next(row, 0)) return;
  const Table table(row, body);
  std::vector<Entry> entries;
  while (rows.next(row, table.columns())) entries.push_back(table.read(std::move(row)));
  join_categories(entries);
  for (Entry& entry : entries) take(std::move(entry));
}

void read_grid(const Source& source, const TakeEntry& take) {
  std::vector<Row> rows = grid_rows(source.text);
  const Table table(rows.front(), source);
  for (std::size_t i = 1; i < rows.size(); ++i) take(table.read(std::move(rows[i])));
}

}  // namespace lamplighter::captions
