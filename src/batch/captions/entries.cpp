#include "batch/captions/entries.h"

#include <algorithm>
#include <utility>

#include "base/lines.h"
#include "base/utf8.h"
#include "batch/captions/formats.h"
#include "batch/captions/rows.h"

namespace lamplighter::captions {
namespace {

constexpr auto kNone = std::string_view::npos;
constexpr const char* kSpace = " \t\r\n";

// Files that are often passed as caption files by mistake, recognised by their first bytes.
struct Mistake {
  std::string_view begin;
  const char* what;
};
using namespace std::string_view_literals;
constexpr Mistake kMistakes[] = {
    {"version https://git-lfs.github.com/spec/"sv,
     "it is a git-lfs pointer; fetch the file with `git lfs pull`"},
    {"\x1F\x8B"sv, "it is compressed with gzip; unpack it with gunzip"},
    {"BZh"sv, "it is compressed with bzip2; unpack it with bunzip2"},
    {"\xFD\x37zXZ\0"sv, "it is compressed with xz; unpack it with unxz"},
    {"\x28\xB5\x2F\xFD"sv, "it is compressed with zstd; unpack it with unzstd"},
    {"PK\x03\x04"sv, "it is a zip archive or a spreadsheet; unpack it, or save the sheet as CSV"},
    {"\xD0\xCF\x11\xE0"sv, "it is a document or a spreadsheet; save it as text or CSV"},
    {"%PDF-"sv, "it is a PDF file; save its text as UTF-8"},
    {"PAR1"sv, "it is a Parquet file; save it as JSON lines or CSV"},
    {"ARROW1\0"sv, "it is an Arrow file; save it as JSON lines or CSV"},
    {"SQLite format 3\0"sv, "it is a database; save its table as CSV"},
    {"\x93NUMPY"sv, "it is a NumPy file; save it as JSON lines or CSV"},
    {"\x89PNG"sv, "it is an image; --params-from reads the settings of one"},
    {"\xFF\xD8\xFF"sv, "it is an image; --params-from reads the settings of one"},
    {"<!DOCTYPE html"sv, "it is a web page; download the file itself"},
    {"<!doctype html"sv, "it is a web page; download the file itself"},
    {"<html"sv, "it is a web page; download the file itself"},
    {"{\\rtf"sv, "it is rich text; save it as plain text"},
    {"<?xml"sv, "it is XML; save it as JSON lines or CSV"},
    {"\xFF\xFE\0\0"sv, "it is UTF-32, expected UTF-8 or UTF-16"},
    {"\0\0\xFE\xFF"sv, "it is UTF-32, expected UTF-8 or UTF-16"},
};

std::string decode_utf16(std::string_view bytes, bool big_endian, const std::string& name) {
  const auto refuse = [&](std::size_t at, const char* what) {
    throw Error(ExitCode::input,
                name + ": byte " + std::to_string(at + 1) + " of the file: invalid UTF-16, " + what);
  };
  const auto unit = [&](std::size_t at) -> char32_t {
    const auto first = static_cast<unsigned char>(bytes[at]),
               second = static_cast<unsigned char>(bytes[at + 1]);
    return big_endian ? char32_t{first} << 8U | second : char32_t{second} << 8U | first;
  };
  if (bytes.size() % 2 != 0) refuse(bytes.size() - 1, "half a unit at the end");
  std::string text;
  text.reserve(bytes.size());
  for (std::size_t at = 2; at < bytes.size(); at += 2) {
    char32_t code = unit(at);
    if (code >= 0xD800 && code < 0xE000) {
      const char32_t low = code < 0xDC00 && at + 2 < bytes.size() ? unit(at + 2) : 0;
      if (low < 0xDC00 || low >= 0xE000) refuse(at, "an unpaired surrogate");
      code = 0x10000 + ((code - 0xD800) << 10U) + (low - 0xDC00);
      at += 2;
    }
    append_utf8(text, code);
  }
  return text;
}

// A zero byte is in no caption, but in UTF-16 and in files of numbers.
void check_zeros(std::string_view text, std::size_t mark, const std::string& name) {
  const std::size_t zero = text.find('\0');
  if (zero == kNone) return;
  const auto line = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(zero), '\n') + 1;
  throw Error(ExitCode::input,
              name + " line " + std::to_string(line) + ", byte " + std::to_string(zero + mark + 1) +
                  " of the file: got a zero byte (UTF-16?), expected UTF-8, or UTF-16 with a "
                  "byte-order mark");
}

bool names_json_lines(std::string_view name) {
  return ends_with(name, ".jsonl") || ends_with(name, ".ndjson");
}

// Skips blank lines and comments at the beginning; counts the lines.
std::string_view skip_comments(std::string_view text, std::size_t& lines) {
  for (;;) {
    const std::size_t begin = text.find_first_not_of(" \t\r\n\v\f");
    if (begin == kNone) return {};
    const std::size_t line = text.rfind('\n', begin);
    const std::size_t start = line == kNone ? 0 : line + 1;
    lines += static_cast<std::size_t>(
        std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(start), '\n'));
    text.remove_prefix(start);
    if (text[begin - start] != '#') return text;
    const std::size_t end = text.find('\n');
    if (end == kNone) return {};
    text.remove_prefix(end + 1);
    ++lines;
  }
}

// Refuses files whose names say that their lines are no captions.
void refuse_kind(std::string_view name) {
  struct Kind {
    const char *ending, *what;
  };
  constexpr Kind kKinds[] = {{".yaml", "settings"}, {".yml", "settings"},    {".toml", "settings"},
                             {".ini", "settings"},  {".html", "a web page"}, {".htm", "a web page"},
                             {".xml", "XML"},       {".py", "a program"},    {".js", "a program"},
                             {".sh", "a program"},  {".tex", "LaTeX"}};
  for (const Kind& kind : kKinds) {
    if (ends_with(name, kind.ending))
      throw Error(ExitCode::input,
                  std::string(name) + ": got a file of " + kind.what + ", expected text, JSON, CSV or TSV");
  }
}

std::string format_of(std::string_view text, std::string_view name, const std::string& column) {
  const std::size_t begin = std::min(text.find_first_not_of(kSpace), text.size() - 1);
  const bool has_lines = names_json_lines(name);
  if (begins_array(text)) {
    const bool is_alone = text.find_first_not_of(kSpace, end_of_value(text, begin)) == kNone;
    return has_lines && !is_alone ? "jsonl" : "json";
  }
  if (text[begin] == '{' && begins_object(text.substr(begin))) {
    const std::size_t end = end_of_value(text, begin);
    const bool is_alone = text.find_first_not_of(kSpace, end) == kNone;
    if (is_alone && (text.substr(begin, end - begin).find('\n') != kNone || !has_lines)) return "json";
    return has_lines ? "jsonl" : "lines";
  }
  // A file of JSON that holds something else, e.g. a link or an error page, must not be read as captions.
  if (ends_with(name, ".json")) return "json";
  if (has_lines) return "jsonl";
  if (ends_with(name, ".tsv")) return "tsv";
  if (ends_with(name, ".csv")) return "csv";
  refuse_kind(name);
  if (begins_grid(text)) return "grid";
  return !column.empty() || find_separator(text, column) != 0 ? "table" : "lines";
}

// The separator of a table whose format is named: the one of its first line, else the usual one.
char separator_of(const Source& source, const std::string& format) {
  if (const char found = find_separator(source.text, source.options.column)) return found;
  return format == "csv" ? ',' : '\t';
}

}  // namespace

bool ends_with(std::string_view name, std::string_view ending) {
  if (name.size() < ending.size()) return false;
  const std::string_view end = name.substr(name.size() - ending.size());
  return std::equal(end.begin(), end.end(), ending.begin(), [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
  });
}

std::vector<std::string> format_names() {
  return {"auto", "coco", "json", "jsonl", "csv", "tsv", "text"};
}

std::string decode_text(std::string bytes, const std::string& name) {
  const std::string_view all = bytes;
  for (const Mistake& mistake : kMistakes) {
    if (all.substr(0, mistake.begin.size()) == mistake.begin)
      throw Error(ExitCode::input, name + ": " + mistake.what);
  }
  const bool little = all.substr(0, 2) == "\xFF\xFE"sv, big = all.substr(0, 2) == "\xFE\xFF"sv;
  const std::size_t mark = all.size() - without_mark(all).size();
  if (little || big) {
    bytes = decode_utf16(all, big, name);
  } else {
    bytes.erase(0, mark);
  }
  check_zeros(bytes, mark, name);
  // Lines may end with a carriage return alone.
  if (bytes.find('\n') == std::string::npos) std::replace(bytes.begin(), bytes.end(), '\r', '\n');
  return bytes;
}

void read_entries(std::string_view text, const std::string& name, const SourceOptions& options,
                  const TakeEntry& take) {
  Source source{text, name, options};
  if (options.format == "text") return read_lines(source, Lines::texts, take);
  if (options.format == "lines") return read_lines(source, Lines::mixed, take);
  source.text = skip_comments(text, source.options.first_line);
  if (source.text.empty()) return;
  const std::string format =
      options.format == "auto" ? format_of(source.text, name, options.column) : options.format;
  if (format == "coco") return read_coco(source, take);
  if (format == "json") return read_json(source, take);
  if (format == "jsonl") return read_lines(source, Lines::json, take);
  if (format == "lines") return read_lines(source, Lines::mixed, take);
  if (format == "grid") return read_grid(source, take);
  read_table(source, separator_of(source, format), take);
}

std::optional<bool> is_line_stream(std::string_view text) {
  if (text.substr(0, 2) == "\xFF\xFE"sv || text.substr(0, 2) == "\xFE\xFF"sv) return false;
  std::size_t lines = 1;
  text = skip_comments(without_mark(text), lines);
  if (text.empty()) return std::nullopt;
  if (begins_array(text) || begins_grid(text) || find_separator(text, "") != 0) return false;
  const std::string_view line = text.substr(0, text.find('\n'));
  const std::size_t begin = line.find_first_not_of(" \t");
  if (line[begin] != '{' || !begins_object(line.substr(begin))) return true;
  // An object that no line completes, or an object of captions.
  if (end_of_value(line, begin) == line.size() && line.find('}') == kNone) return false;
  try {
    return is_record(parse_json(line, "", ExitCode::input));
  } catch (const Error&) {
    return true;  // the line fails alone
  }
}

}  // namespace lamplighter::captions
