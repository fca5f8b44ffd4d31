#include <algorithm>
#include <array>

#include "base/lines.h"
#include "base/message.h"
#include "batch/captions/formats.h"
#include "batch/captions/rows.h"
#include "pipeline/metadata/request_fields.h"

namespace lamplighter::captions {
namespace {

constexpr auto kNone = std::string_view::npos;

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_word(char c) {
  return is_letter(c) || c == '_' || c == '-' || (c >= '0' && c <= '9');
}

bool begins_with(std::string_view text, std::string_view begin) {
  return text.substr(0, begin.size()) == begin;
}

std::string_view trimmed_end(std::string_view text) {
  return text.substr(0, text.find_last_not_of(" \t\r") + 1);
}

// "<li>", "</p>", "<img src=": the tags that lines of web pages begin with.
bool begins_tag(std::string_view line) {
  constexpr std::array<std::string_view, 24> kTags{
      "a",  "b",    "body", "br",  "code", "dd", "div", "dl",  "dt",   "em",     "h1",    "h2",
      "h3", "head", "i",    "img", "li",   "ol", "p",   "pre", "span", "strong", "table", "ul"};
  constexpr std::array<std::string_view, 6> kMoreTags{"html", "tbody", "td", "th", "thead", "tr"};
  if (line[0] != '<') return false;
  line.remove_prefix(begins_with(line, "</") ? 2 : 1);
  const std::size_t end = line.find_first_of(" \t/>");
  if (end == kNone) return false;
  const std::string name = field_name(line.substr(0, end));
  const auto is_one_of = [&](const auto& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  return is_one_of(kTags) || is_one_of(kMoreTags);
}

// A line without a word: "---", "```", "],", "}".
bool is_punctuation(std::string_view line) {
  return line.size() > 1 ? line.find_first_not_of("[]{}(),;|+-=*_~`:<>/\\\"' \t\r") == kNone
                         : std::string_view("[]{}()").find(line[0]) != kNone;
}

// A name, quoted or not, with a colon or an equals sign behind it, and the rest of the line.
struct Field {
  std::string name;  // empty: none
  bool is_quoted = false, is_assigned = false;
  std::string_view rest;
};

Field find_field(std::string_view line) {
  Field field;
  const char quoted = line.empty() ? '\0' : line[0];
  field.is_quoted = quoted == '"' || quoted == '\'';
  if (field.is_quoted) line.remove_prefix(1);
  std::size_t end = 0;
  while (end < line.size() && (is_word(line[end]) || line[end] == ' ')) ++end;
  const std::string_view name = line.substr(0, end);
  if (field.is_quoted && (end == line.size() || line[end++] != quoted)) return {};
  const std::size_t sign = line.find_first_not_of(" \t", end);
  if (sign == kNone || (line[sign] != ':' && line[sign] != '=')) return {};
  field.is_assigned = line[sign] == '=';
  field.rest = line.substr(std::min(line.find_first_not_of(" \t", sign + 1), line.size()));
  field.rest = trimmed_end(field.rest);
  field.name = field_name(name);
  return field;
}

// "prompt: a cat", "Prompt 3: a cat", "seed: 3", "\"prompt\": \"a cat\"", "names = [".
bool is_field(std::string_view line) {
  constexpr std::array<std::string_view, 7> kTexts{
      "prompt", "prompts", "caption", "captions", "positive_prompt", "text_prompt", "image_prompt"};
  constexpr std::array<std::string_view, 9> kNumbers{"seed",  "cfg_scale", "temperature", "top_k", "top_p",
                                                     "width", "height",    "batch_count", "steps"};
  Field field = find_field(line);
  const auto is_one_of = [&](const auto& names) {
    return std::find(names.begin(), names.end(), field.name) != names.end();
  };
  if (field.name.empty() || field.is_quoted) return field.is_quoted && !field.name.empty();
  const bool opens = !field.rest.empty() && std::string_view("[({\"'").find(field.rest[0]) != kNone;
  if (field.is_assigned && opens && line.substr(0, line.find('=')).find_first_of(" \t") >= line.find('=') - 1)
    return true;
  if (is_one_of(kNumbers))
    return !field.rest.empty() && field.rest.find_first_not_of("0123456789.,-\"'") == kNone;
  field.name.resize(field.name.find_last_not_of("0123456789_") + 1);
  return is_one_of(kTexts);
}

// "\"a cat\"," and "'a cat'," are elements of a list.
bool is_element(std::string_view line) {
  line = trimmed_end(line);
  const bool is_quoted = line[0] == '"' || line[0] == '\'';
  return is_quoted && line.size() > 2 && line.back() == ',' && line[line.size() - 2] == line[0];
}

// "['a cat', 'a dog']" and "(\"a cat\", \"a dog\")": a list or a tuple of Python, or an array of JSON.
bool begins_list(std::string_view line) {
  if (line[0] != '[' && line[0] != '(') return false;
  const std::size_t next = std::min(line.find_first_not_of(" \t", 1), line.size() - 1);
  const bool is_text = line[next] == '"' || line[next] == '\'';
  if (line[0] == '[') return is_text || begins_array(line);
  const std::size_t end = is_text ? line.find(line[next], next + 1) : kNone;
  return end != kNone && line.substr(end + 1, 1) == ",";
}

struct Form {
  bool (*fits)(std::string_view line);
  const char *what, *hint;
};
bool begins_table(std::string_view line) {
  return is_rule(line) || line[0] == '|' || begins_with(line, "\xE2\x94") || begins_with(line, "\xE2\x95");
}
bool begins_fence(std::string_view line) {
  return begins_with(line, "```") || begins_with(line, "~~~");
}
bool begins_comment(std::string_view line) {
  return begins_with(line, "//") || begins_with(line, "/*") || begins_with(line, "<!--");
}
bool begins_command(std::string_view line) {
  return begins_with(line, "\\item") || begins_with(line, "\\begin{") || begins_with(line, "\\end{");
}

constexpr const char* kQuotes = "JSON has double quotes, and stands alone in a file";
constexpr Form kForms[] = {
    {begins_table, "a line of a table", "a table has names and |---|---| in its first lines, or is CSV"},
    {begins_tag, "a tag of a web page", "remove it"},
    {begins_fence, "a fence of code", "remove it"},
    {begins_comment, "a comment", "comments begin with #"},
    {begins_command, "a command of LaTeX", "remove it"},
    {is_punctuation, "a line without words", "remove it"},
    {begins_list, "a list of a program", kQuotes},
    {is_element, "an element of a list", "remove quotes and commas"},
    {is_field, "a field and its value", "--prompt \"...\" --seed 3 is one, too"},
};

[[noreturn]] void refuse_form(std::string_view line, const std::string& where, const Form& form) {
  throw Error(ExitCode::input, where + ": got " + quote(trimmed_end(line)) + ", " + form.what +
                                   ", expected a caption; " + form.hint +
                                   "; a caption with this text is {\"prompt\": \"...\"}");
}

}  // namespace

void refuse_markup(std::string_view line, const std::string& where) {
  for (const Form& form : kForms) {
    if (form.fits(line)) refuse_form(line, where, form);
  }
}

void refuse_item(std::string_view line, const std::string& where) {
  refuse_form(line, where, {nullptr, "an item of a list", "remove the marks"});
}

void refuse_dictionary(std::string_view line, const std::string& where) {
  const std::size_t next = line.find_first_not_of(" \t\r\n", 1);
  if (next != kNone && line[next] == '\'')
    refuse_form(line, where, {nullptr, "a dictionary of a program", kQuotes});
}

void refuse_document(std::string_view text, const std::string& where) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  const bool is_object = begin != kNone && text[begin] == '{' && find_field(text.substr(begin + 1)).is_quoted;
  if (is_object || begins_array(text) || begins_grid(text))
    throw Error(ExitCode::input,
                where + ": got " + excerpt_of(text) +
                    ", expected the text of a caption; a file of captions is no folder's member: "
                    "give its name");
}

}  // namespace lamplighter::captions
