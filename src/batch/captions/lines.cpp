#include <algorithm>
#include <array>
#include <utility>

#include "base/lines.h"
#include "base/message.h"
#include "batch/captions/formats.h"
#include "pipeline/metadata/request_fields.h"
#include "text/list_mark.h"
#include "text/prompt_syntax.h"

namespace lamplighter::captions {
namespace {

constexpr auto kNone = std::string_view::npos;

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool begins_json(std::string_view line) {
  return line[0] == '{' || line[0] == '"';
}

// A line and its number; an object that is printed over several lines counts as one.
struct Piece {
  std::string_view text;
  std::size_t number;
};

// Calls take for every line that is not blank; joins the lines of an object whose brace stands alone on the
// first one.
template <class Take>
void for_each_piece(std::string_view text, const Take& take) {
  std::size_t number = 1;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    const std::size_t first = line.find_first_not_of(" \t");
    const bool opens = first != kNone && line[first] == '{' && is_blank(line.substr(first + 1));
    if (opens) end = std::min(text.find('\n', end_of_value(text, begin + first)), text.size());
    std::string_view piece = text.substr(begin, end - begin);
    if (!piece.empty() && piece.back() == '\r') piece.remove_suffix(1);
    if (!is_blank(piece)) take(Piece{piece, number});
    number += static_cast<std::size_t>(std::count(piece.begin(), piece.end(), '\n')) + 1;
    begin = end + 1;
  }
}

// Editors turn the two hyphens of a flag into a dash.
void refuse_dash(std::string_view line, const std::string& where) {
  constexpr std::array<std::string_view, 5> kDashes{"\u2014", "\u2013-", "\u2013\u2013", "\u2013",
                                                    "\u2212\u2212"};
  constexpr std::array<std::string_view, 4> kFirst{"prompt", "negative_prompt", "seed", "cfg_scale"};
  for (const std::string_view dash : kDashes) {
    if (line.substr(0, dash.size()) != dash) continue;
    const std::size_t end = std::min(line.find_first_of(" \t="), line.size());
    const std::string name = field_name(line.substr(dash.size(), end - dash.size()));
    if (std::find(kFirst.begin(), kFirst.end(), name) == kFirst.end()) continue;
    throw Error(ExitCode::input, where + ": got " + quote(line.substr(0, end)) +
                                     " with a dash, expected two hyphens: --" + name);
  }
}

// Short flags are this program's and others' on a command line.
void refuse_short_flag(std::string_view line, const std::string& where) {
  constexpr std::string_view kLetters = "pnsb";
  if (line.size() < 3 || line[0] != '-' || kLetters.find(line[1]) == kNone) return;
  if (line[2] != ' ' && line[2] != '\t' && line[2] != '=' && line[2] != '"') return;
  throw Error(ExitCode::input,
              where + ": got " + quote(line.substr(0, 2)) +
                  ", expected a caption, or flags by their long names: --prompt \"...\" --seed "
                  "3; for a caption with this text use {\"prompt\": \"...\"}");
}

// Finds the items of lists: lines with marks where the line before or behind is the neighbouring item, and a
// line with a mark that is alone.
std::vector<bool> find_items(const std::vector<Piece>& pieces) {
  std::vector<bool> is_item(pieces.size());
  ListMark previous;
  std::size_t previous_place = 0, lines = 0, marks = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const std::string_view text = without_mark(pieces[i].text);
    if (is_blank(text) || text[text.find_first_not_of(" \t\v\f")] == '#') continue;
    const ListMark mark = find_list_mark(text);
    const bool goes_on = mark.kind == 0 && previous.kind != 0 && (text[0] == ' ' || text[0] == '\t');
    if (goes_on) continue;
    if (continues_list(previous, mark)) is_item[previous_place] = is_item[i] = true;
    previous = mark;
    previous_place = i;
    ++lines;
    if (mark.kind != 0 && mark.kind != 'a' && mark.number < 2) ++marks;
  }
  if (lines == 1 && marks == 1) is_item[previous_place] = true;
  return is_item;
}

void take_line(const Piece& line, const Source& source, Lines kind, bool is_item, const TakeEntry& take) {
  const std::string where = source.line(line.number);
  const std::string_view text = without_mark(line.text);  // of a file that was appended
  if (is_blank(text)) return;
  const char begin = text[text.find_first_not_of(" \t\v\f")];
  if (begin == '#') return;
  if (kind == Lines::texts) return take(make_text(where, std::string(text)));
  try {
    const std::string_view content = text.substr(text.find(begin));
    if (begin == '{') refuse_dictionary(content, where);
    if (kind == Lines::json || (begin == '{' && begins_object(content))) {
      const Json json = begins_json(content) ? parse_captions_json(content, where) : Json();
      if (json.is_string()) return take(make_text(where, json.get<std::string>()));
      if (!json.is_object())
        throw Error(ExitCode::input, where + ": got " + excerpt_of(content) +
                                         ", expected a JSON object, or a caption between quotes; captions "
                                         "without quotes belong into a .txt file");
      return take(make_record(Entry::Form::record, where, json, source.options.column));
    }
    if (begins_flags(content)) return take(read_flags(content, where, source.options.column));
    if (const std::string_view flag = find_flag(content); !flag.empty()) {
      throw Error(ExitCode::input,
                  where + ": got " + quote(flag) +
                      " behind a caption, expected flags alone, --prompt \"...\" first; for a "
                      "caption with this text use {\"prompt\": \"...\"}");
    }
    refuse_settings(content, where);
    refuse_dash(content, where);
    refuse_short_flag(content, where);
    if (is_item) refuse_item(content, where);
    refuse_markup(content, where);
    take(make_text(where, std::string(text)));
  } catch (const Error& error) {
    Entry entry;
    entry.where = where;
    entry.failure = error;
    take(std::move(entry));
  }
}

bool is_flag(std::string_view word) {
  return word.size() > 2 && word.substr(0, 2) == "--" && is_letter(word[2]);
}

// Whether a text begins behind these characters of a word; an apostrophe elsewhere is no quote.
bool awaits_value(std::string_view word) {
  return word.empty() || (word.back() == '=' && is_flag(word) && word.find('=') == word.size() - 1);
}

// Splits a line as a shell does: blanks between words, quotes of both kinds, backslashes.
std::vector<std::string> split_words(std::string_view line, const std::string& where) {
  std::vector<std::string> words;
  bool in_word = false;
  char quoted = 0;
  for (std::size_t at = 0; at < line.size(); ++at) {
    const char c = line[at];
    const bool is_gap = quoted == 0 && (c == ' ' || c == '\t' || c == '\r');
    if (is_gap) {
      in_word = false;
      continue;
    }
    if (!in_word) words.emplace_back();
    in_word = true;
    const bool escapes = c == '\\' && quoted != '\'' && at + 1 < line.size() &&
                         (quoted == 0 || line[at + 1] == '"' || line[at + 1] == '\\');
    if (escapes) {
      words.back() += line[++at];
    } else if (quoted == 0 && (c == '"' || (c == '\'' && awaits_value(words.back())))) {
      quoted = c;
    } else if (c == quoted) {
      quoted = 0;
    } else {
      words.back() += c;
    }
  }
  if (quoted != 0) throw Error(ExitCode::input, where + ": got a quote " + quoted + " that is not closed");
  return words;
}

}  // namespace

void read_lines(const Source& source, Lines kind, const TakeEntry& take) {
  if (kind == Lines::texts) {
    return for_each_line(source.text, [&](std::string_view line, std::size_t number) {
      take_line({line, number}, source, kind, false, take);
    });
  }
  std::vector<Piece> pieces;
  for_each_piece(source.text, [&](const Piece& piece) { pieces.push_back(piece); });
  const std::vector<bool> is_item =
      kind == Lines::mixed ? find_items(pieces) : std::vector<bool>(pieces.size());
  for (std::size_t i = 0; i < pieces.size(); ++i) take_line(pieces[i], source, kind, is_item[i], take);
}

void refuse_settings(std::string_view line, const std::string& where) {
  if (line.find(':') == kNone) return;
  const std::string words = field_name(line);
  const auto has = [&](std::string_view text, std::size_t from = 0) {
    return words.find(text, from) != std::string::npos;
  };
  const std::size_t steps = words.find("steps:");
  const auto has_setting = [&](std::string_view name) {
    return steps != std::string::npos &&
           (has(",_" + std::string(name), steps) || has("," + std::string(name), steps));
  };
  const bool is_list =
      has_setting("sampler:") || has_setting("seed:") || has_setting("cfg_scale:") || has_setting("size:");
  if (!is_list && !has("negative_prompt:") && !has("negative_prompt_:")) return;
  throw Error(ExitCode::input,
              where + ": got " + excerpt_of(line) +
                  ", expected a caption; settings as web UIs write them into images are read by "
                  "--params-from IMAGE, or are flags: --prompt \"...\" --negative_prompt \"...\" --seed 3");
}

bool begins_flags(std::string_view line) {
  return is_flag(line);
}

// A text without quotes goes on to the next flag, as in web UIs.
Entry read_flags(std::string_view line, const std::string& where, const std::string& column) {
  const std::vector<std::string> words = split_words(line, where);
  Json fields = Json::object();
  for (std::size_t at = 0; at < words.size();) {
    if (!is_flag(words[at]))
      throw Error(ExitCode::input, where + ": got " + quote(words[at]) +
                                       ", expected a flag; texts of several "
                                       "words need quotes");
    const std::size_t equals = words[at].find('=');
    const std::string name =
        field_name(std::string_view(words[at]).substr(2, equals == std::string::npos ? equals : equals - 2));
    std::string value = equals == std::string::npos ? "" : words[at].substr(equals + 1);
    std::size_t next = at + 1;
    const bool is_text = name == "prompt" || name == "negative_prompt";
    const bool has_value = equals != std::string::npos || (next < words.size() && !is_flag(words[next]));
    if (!has_value) throw Error(ExitCode::input, where + ": --" + name + ": got no value");
    if (equals == std::string::npos) value = words[next++];
    while (is_text && next < words.size() && !is_flag(words[next])) value += " " + words[next++];
    if (fields.contains(name)) throw Error(ExitCode::input, where + ": got --" + name + " twice");
    fields[name] = value_of(name, value);
    at = next;
  }
  return make_record(Entry::Form::flags, where, std::move(fields), column);
}

}  // namespace lamplighter::captions
