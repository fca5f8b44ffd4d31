#include "batch/captions/captions.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <unordered_map>
#include <utility>

#include "base/files.h"
#include "base/lines.h"
#include "base/message.h"
#include "base/suggestion.h"
#include "base/utf8.h"
#include "batch/captions/entries.h"
#include "pipeline/metadata/request_fields.h"

namespace lamplighter {
namespace {

namespace fs = std::filesystem;
using captions::Entry;

constexpr auto kNone = std::string_view::npos;

std::string_view without_line_ends(std::string_view text) {
  return text.substr(0, text.find_last_not_of("\r\n") + 1);
}

// Decodes a file and checks its bytes. Positions count lines and bytes of the file from 1.
std::string decode_set(std::string bytes, const std::string& name) {
  const std::size_t size = bytes.size();
  std::string text = captions::decode_text(std::move(bytes), name);
  const std::size_t mark = size == text.size() + 3 ? 3 : 0;
  const auto refuse = [&](std::size_t at, const char* what) {
    const auto line = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n') + 1;
    throw Error(ExitCode::input, name + " line " + std::to_string(line) + ", byte " +
                                     std::to_string(at + mark + 1) + " of the file: " + what);
  };
  const std::size_t bad = find_invalid_utf8(text);
  if (bad != kNone) refuse(bad, "invalid UTF-8; save the file as UTF-8");
  if (is_blank(text)) throw Error(ExitCode::input, name + ": the file is empty, expected captions");
  return text;
}

// Reads an integer >= 0, or its digits.
std::int64_t read_number(JsonReader& record, const char* key) {
  const Json& value = record.value(key);
  const char* const expected = "an integer of 0 to 2^63 - 1";
  if (value.is_string()) {
    const auto& digits = value.get_ref<const std::string&>();
    const char* const end = digits.data() + digits.size();
    std::int64_t number = 0;
    const auto [stop, error] = std::from_chars(digits.data(), end, number);
    if (error != std::errc() || stop != end || digits[0] == '-') record.reject(key, expected);
    return number;
  }
  const bool fits = value.is_number_unsigned() && value.get<std::uint64_t>() >> 63 == 0;
  if (!fits) record.reject(key, expected);
  return value.get<std::int64_t>();
}

// Reads an integer >= 0, or any text.
std::string read_id(JsonReader& record, const char* key) {
  const Json& value = record.value(key);
  if (!value.is_string()) return std::to_string(read_number(record, key));
  std::string id = value.get<std::string>();
  if (is_blank(id) || id.find('\0') != std::string::npos) record.reject(key, "a text or an integer");
  return id;
}

void read_annotation(const Entry& entry, Caption& caption) {
  JsonReader record(entry.record, entry.where, ExitCode::input);
  caption.image_id = read_number(record, "image_id");
  if (record.has("id")) caption.id = std::to_string(read_number(record, "id"));
  caption.request.prompt = record.text("caption");
}

void read_record(const Entry& entry, Caption& caption) {
  JsonReader record(entry.record, entry.where, ExitCode::input);
  if (entry.prompt_key.empty() && !record.has("class"))
    record.fail("got no prompt, expected prompt, caption, text or class");
  if (record.has("seed") && is_random_seed(record.value("seed")))
    record.reject("seed", "0 to 2^64 - 1: a set that is continued generates the same images");
  caption.seed = read_request_fields(record, caption.request, entry.prompt_key);
  for (const char* name : {"id", "prompt_id", "item_id"}) {
    if (record.has(name) && caption.id.empty()) caption.id = read_id(record, name);
  }
  if (record.has("image_id")) caption.image_id = read_number(record, "image_id");
  if (entry.form == Entry::Form::flags) record.finish();
}

Caption caption_of(Entry entry) {
  if (entry.failure) throw Error(*entry.failure);
  Caption caption;
  if (!entry.id.empty() && (is_blank(entry.id) || entry.id.find('\0') != std::string::npos))
    throw Error(ExitCode::input, entry.where + ": id: got " + to_text(Json(entry.id)) + ", expected a text");
  caption.id = entry.id;
  if (entry.form == Entry::Form::text) {
    caption.request.prompt = std::move(entry.text);
  } else if (entry.form == Entry::Form::annotation) {
    read_annotation(entry, caption);
  } else {
    read_record(entry, caption);
  }
  const bool has_prompt =
      entry.form == Entry::Form::text || entry.form == Entry::Form::annotation || !entry.prompt_key.empty();
  if (has_prompt) check_prompt(caption.request.prompt, entry.where);
  caption.fields = std::move(entry.fields);
  caption.where = std::move(entry.where);
  return caption;
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

// Reads a folder of text files, one caption each (DPG-Bench), in the order of their names. The names are ids.
std::vector<Caption> read_folder(const std::string& path) {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path, error)) {
    if (entry.path().extension() == ".txt") files.push_back(entry.path().string());
  }
  if (error) throw Error(ExitCode::input, "cannot read " + path + ": " + error.message());
  if (files.empty())
    throw Error(
        ExitCode::input,
        path + ": got a folder without .txt files, expected a caption file or a folder of .txt files");
  std::sort(files.begin(), files.end());
  std::vector<Caption> captions;
  for (const std::string& file : files) {
    const std::string text = decode_set(read_input(file), file);
    captions::refuse_document(text, file);
    for_each_line(text, [&](std::string_view line, std::size_t number) {
      captions::refuse_settings(line, file + " line " + std::to_string(number));
    });
    Caption caption;
    caption.request.prompt = std::string(without_line_ends(text));
    check_prompt(caption.request.prompt, file);
    caption.id = fs::path(file).stem().string();
    caption.where = file;
    captions.push_back(std::move(caption));
  }
  return captions;
}

}  // namespace

std::vector<Caption> read_captions(const std::string& path, const std::string& format,
                                   const std::string& column) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return read_folder(path);
  return parse_captions(read_input(path), path == "-" ? "standard input" : path, format, column);
}

std::vector<Caption> parse_captions(std::string_view bytes, const std::string& name,
                                    const std::string& format, const std::string& column) {
  const std::vector<std::string> formats = captions::format_names();
  if (std::find(formats.begin(), formats.end(), format) == formats.end())
    throw Error(ExitCode::usage, "format: got " + quote(format) + ", expected " + list_of(formats));
  const std::string text = decode_set(std::string(bytes), name);
  captions::SourceOptions options;
  options.format = format;
  options.column = column;
  std::vector<Caption> set;
  captions::read_entries(text, name, options,
                         [&](Entry entry) { set.push_back(caption_of(std::move(entry))); });
  if (set.empty()) throw Error(ExitCode::input, name + ": no captions found");
  check_ids(set);
  return set;
}

}  // namespace lamplighter
