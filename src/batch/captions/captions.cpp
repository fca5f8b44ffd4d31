#include "batch/captions/captions.h"

#include <algorithm>
#include <filesystem>
#include <unordered_map>

#include "base/files.h"
#include "base/lines.h"
#include "base/utf8.h"
#include "batch/captions/formats.h"
#include "pipeline/requests/request_fields.h"

namespace lamplighter {
namespace {

namespace fs = std::filesystem;

constexpr auto kNone = std::string_view::npos;

struct Format {
  const char* name;
  std::vector<Caption> (*read)(std::string_view text, const std::string& name);
};
constexpr Format kFormats[] = {{"coco", captions::read_coco},
                               {"json", captions::read_array},
                               {"jsonl", captions::read_json_lines},
                               {"tsv", captions::read_table},
                               {"text", captions::read_lines}};

std::string_view without_line_ends(std::string_view text) {
  return text.substr(0, text.find_last_not_of("\r\n") + 1);
}

// Files that are often found in a caption file's place, by how they begin.
struct Mistake {
  std::string_view begin;
  const char* what;
};
using namespace std::string_view_literals;
constexpr Mistake kMistakes[] = {
    {"version https://git-lfs.github.com/spec/"sv,
     "it is a git-lfs pointer; fetch the file with `git lfs pull`"},
    {"\x1F\x8B"sv, "it is compressed with gzip; unpack it with gunzip"},
    {"PK\x03\x04"sv, "it is a zip archive; unpack it"},
    {"\xFF\xFE"sv, "it is UTF-16, expected UTF-8"},
    {"\xFE\xFF"sv, "it is UTF-16, expected UTF-8"},
};

// " line 3, byte 71", with bytes of the file, from 1.
std::string position(std::string_view bytes, std::size_t at) {
  const auto line = std::count(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(at), '\n') + 1;
  return " line " + std::to_string(line) + ", byte " + std::to_string(at + 1);
}

void check_bytes(std::string_view bytes, const std::string& name) {
  for (const Mistake& mistake : kMistakes) {
    if (bytes.substr(0, mistake.begin.size()) == mistake.begin)
      throw Error(ExitCode::input, name + ": " + mistake.what);
  }
  const auto refuse = [&](std::size_t at, const char* what) {
    throw Error(ExitCode::input, name + position(bytes, at) + " of the file: " + what);
  };
  const std::size_t zero = bytes.find('\0');
  if (zero != kNone) refuse(zero, zero < 2 ? "got a zero byte (UTF-16?), expected UTF-8" : "got a zero byte");
  const std::size_t bad = find_invalid_utf8(bytes);
  if (bad != kNone) refuse(bad, "no valid UTF-8");
  if (is_blank(without_mark(bytes))) throw Error(ExitCode::input, name + ": it is empty, expected captions");
}

// Behind the bracket that closes the one at `begin`.
std::size_t end_of_value(std::string_view text, std::size_t begin) {
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t at = begin; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string) {
      if (c == '\\') ++at;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if ((c == '}' || c == ']') && --depth == 0) {
      return at + 1;
    }
  }
  return text.size();
}

// A bracket may begin a text: "[oil on canvas] a cat".
bool begins_array(std::string_view text, std::size_t bracket) {
  const std::size_t next = text.find_first_not_of(" \t\r\n", bracket + 1);
  if (next == kNone) return true;
  const std::string_view rest = text.substr(next);
  const auto is_word = [&](std::string_view word) { return rest.substr(0, word.size()) == word; };
  return std::string_view("\"{[]-0123456789").find(rest[0]) != kNone || is_word("null") || is_word("true") ||
         is_word("false") || is_word("NaN");
}

bool ends_with(std::string_view name, std::string_view ending) {
  return name.size() >= ending.size() && name.substr(name.size() - ending.size()) == ending;
}

const char* format_of(std::string_view text, std::string_view name) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (text[begin] == '[' && begins_array(text, begin)) return "json";
  if (text[begin] == '{') {
    const std::size_t end = end_of_value(text, begin);
    const std::size_t next = text.find_first_not_of(" \t\r\n", end);
    if (next != kNone && text[next] == '{') return "jsonl";
    const std::string_view value = text.substr(begin, end - begin);
    const bool has_sections = value.find("\"annotations\"") != kNone || value.find("\"images\"") != kNone;
    return has_sections ? "coco" : "jsonl";
  }
  // What a name promises is not taken for a caption: a link's target or an excuse in a .json file.
  if (ends_with(name, ".json") || ends_with(name, ".jsonl")) return "json";
  return ends_with(name, ".tsv") || captions::begins_table(text) ? "tsv" : "text";
}

void check_ids(const std::vector<Caption>& captions) {
  std::unordered_map<std::string_view, const Caption*> owners;
  owners.reserve(captions.size());
  for (const Caption& caption : captions) {
    if (caption.id.empty()) continue;
    const auto [owner, is_new] = owners.emplace(caption.id, &caption);
    if (!is_new) {
      throw Error(ExitCode::input, caption.where + ": id: got " + shorten(Json(caption.id).dump(), 60) +
                                       ", which " + owner->second->where + " has");
    }
  }
}

// A folder of texts, a caption each, as DPG-Bench brings them: in the order of their names, which are ids.
std::vector<Caption> read_folder(const std::string& path) {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path, error)) {
    if (entry.path().extension() == ".txt") files.push_back(entry.path().string());
  }
  if (error) throw Error(ExitCode::input, "cannot read " + path + ": " + error.message());
  if (files.empty())
    throw Error(ExitCode::input,
                path + ": got a folder without texts, expected a caption file, or a folder of .txt files");
  std::sort(files.begin(), files.end());
  std::vector<Caption> captions;
  for (const std::string& file : files) {
    const std::string bytes = read_input(file);
    check_bytes(bytes, file);
    Caption caption;
    caption.request.prompt = std::string(without_line_ends(without_mark(bytes)));
    check_prompt(caption.request.prompt, file);
    caption.id = fs::path(file).stem().string();
    caption.where = file;
    captions.push_back(std::move(caption));
  }
  return captions;
}

}  // namespace

std::vector<Caption> read_captions(const std::string& path, const std::string& format) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return read_folder(path);
  return parse_captions(read_input(path), path == "-" ? "standard input" : path, format);
}

std::vector<Caption> parse_captions(std::string_view bytes, const std::string& name,
                                    const std::string& format) {
  const auto find = [](std::string_view wanted) {
    return std::find_if(std::begin(kFormats), std::end(kFormats),
                        [&](const Format& one) { return one.name == wanted; });
  };
  if (format != "auto" && find(format) == std::end(kFormats)) {
    throw Error(ExitCode::usage,
                "caption format: got " + format + ", expected auto, coco, json, jsonl, tsv or text");
  }
  check_bytes(bytes, name);
  const std::string_view text = without_mark(bytes);
  std::vector<Caption> captions = find(format == "auto" ? format_of(text, name) : format)->read(text, name);
  if (captions.empty()) throw Error(ExitCode::input, name + ": no captions found");
  check_ids(captions);
  return captions;
}

}  // namespace lamplighter
