#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "lamplighter/error.h"

// The readers of caption sets and prompt files. They are the same for all commands; each command makes its
// requests of the entries.
namespace lamplighter::captions {

struct Entry {
  enum class Form {
    text,        // a caption alone
    record,      // an object of a JSON file of captions or of a line: fields of a request
    data,        // a row of a table or an object of a data set: fields of a request among others
    flags,       // a line in the form of web UIs: --prompt "..." --seed 3
    annotation,  // of COCO's caption file, as written
  };
  Form form = Form::text;
  std::string where;             // for messages: "captions.json annotations[3]", "parti.tsv line 7"
  std::string text;              // Form::text
  Json record;                   // other forms: fields by field_name
  Json fields;                   // the record as written; null for texts and annotations
  std::string prompt_key;        // the field of `record` that holds the prompt; empty: none
  std::string id;                // the key of the record in an object of ids; empty: none
  std::optional<Error> failure;  // why it cannot be read
};
using TakeEntry = std::function<void(Entry entry)>;

struct SourceOptions {
  // auto, coco, json, jsonl, csv, tsv, text, or lines (texts, JSON objects and flags, a line each)
  std::string format = "auto";
  std::string column;          // column or key of the prompts; empty: found by name
  bool says_element = false;   // positions in arrays are "element 3" instead of "[3]"
  std::size_t first_line = 1;  // number of the first line
};

std::vector<std::string> format_names();

// Text of a file as UTF-8 without byte-order mark; UTF-16 needs its mark. Throws Error(ExitCode::input) for
// ill-formed UTF-16, and for files that are often passed by mistake. `name` stands for the file.
std::string decode_text(std::string bytes, const std::string& name);

// Reads the entries of a text in order. What is wrong with one entry is its failure; what is wrong with the
// text is thrown: Error(ExitCode::input), or Error(ExitCode::usage) for options that do not fit.
// Lines that begin with "#" are comments: in texts, JSON lines, and before other content.
void read_entries(std::string_view text, const std::string& name, const SourceOptions& options,
                  const TakeEntry& take);

// Refuses a line of the settings that web UIs write below a caption.
void refuse_settings(std::string_view line, const std::string& where);

// Refuses a file of captions where the text of a single one belongs.
void refuse_document(std::string_view text, const std::string& where);

// Whether lines that begin like this can be read one by one as they arrive, in format `lines`. Empty when the
// text has only comments so far.
std::optional<bool> is_line_stream(std::string_view text);

}  // namespace lamplighter::captions
