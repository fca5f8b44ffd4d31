#pragma once

#include <string>
#include <string_view>

#include "batch/captions/entries.h"

// The parsers behind read_entries.
namespace lamplighter::captions {

struct Source {
  std::string_view text;
  std::string name;
  SourceOptions options;

  std::string line(std::size_t number) const {  // counted from 1 in `text`
    return name + " line " + std::to_string(options.first_line + number - 1);
  }
};

void read_coco(const Source& source, const TakeEntry& take);
void read_json(const Source& source, const TakeEntry& take);  // an array or an object of captions
void read_table(const Source& source, char separator, const TakeEntry& take);
void read_grid(const Source& source, const TakeEntry& take);  // where begins_grid

// What lines may be beside captions.
enum class Lines { texts, mixed, json };
void read_lines(const Source& source, Lines kind, const TakeEntry& take);

// Makes an entry of a record: names of fields, numbers, the key of the prompt.
Entry make_record(Entry::Form form, std::string where, Json fields, const std::string& column);
Entry make_text(std::string where, std::string text);
Entry make_failure(std::string where, const std::string& message);

// Reads a line in the form of web UIs. Throws Error(ExitCode::input).
Entry read_flags(std::string_view line, const std::string& where, const std::string& column);
bool begins_flags(std::string_view line);

// Refuses a line of a document or a program that is no caption: a row of a table, a tag, an element of a list
// in Python, a field of an object, and so on.
void refuse_markup(std::string_view line, const std::string& where);
[[noreturn]] void refuse_item(std::string_view line, const std::string& where);  // of a list
void refuse_dictionary(std::string_view line, const std::string& where);  // of Python, which is no JSON

// The separator of a table that begins with `text`, or 0 when its first line cannot head one: it has several
// columns, and one of them holds prompts or classes, or is `column`.
char find_separator(std::string_view text, const std::string& column);

bool ends_with(std::string_view name, std::string_view ending);  // in any case

// Converts a cell or the value of a flag to a number if the field holds numbers and it is one, else to a
// text.
Json value_of(const std::string& name, const std::string& cell);

std::string list_names(const std::vector<std::string>& names);  // for messages

// The first of the names that prompts may have.
std::string find_prompt_name(const std::vector<std::string>& names);

// Returns the end of the bracketed value that opens at `begin`.
std::size_t end_of_value(std::string_view text, std::size_t begin);

// Whether a JSON object is one record and no collection of captions.
bool is_record(const Json& object);

// Whether a line that begins with a brace is a JSON object and no caption like "{red|blue} boat" or
// "{{red}}".
bool begins_object(std::string_view line);
bool begins_array(std::string_view text);

// Parses what may be a caption that merely begins as JSON does; its error says how to write one.
Json parse_captions_json(std::string_view text, const std::string& where);

}  // namespace lamplighter::captions
