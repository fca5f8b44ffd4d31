#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/json.h"
#include "lamplighter/options.h"

namespace lamplighter {

// An option of a method: what flags, configuration files, the words of `bench --methods`, the metadata of
// pictures and resolve_method know of it.
struct MethodOption {
  // The kind of field is the option's type: text, integer, number, list of numbers. A field that is empty is
  // an option that is not set.
  using Field = std::variant<std::string MethodOptions::*, std::optional<std::int64_t> MethodOptions::*,
                             std::optional<float> MethodOptions::*, std::vector<float> MethodOptions::*>;
  using Choices = std::array<const char*, 5>;

  const char* key;    // in JSON and messages; with dashes for underscores it is the flag
  const char* word;   // in `bench --methods`
  const char* label;  // in the text of a picture
  const char* group;  // of --help
  const char* value;  // what --help calls a value
  const char* help;
  Field field;
  const char* follows = "";  // key of the option whose change takes the meaning from a recorded value
  // What a method has that reads it: a "drafter", "children" that are drawn, "neighbours", "delta", a rule of
  // this name, the tree "dynamic", "self" drafting, a "window", its "front", open "rows", drafts of
  // "continuous" tokens, "steps" of those, their "passes" without drafts; "": whatever drafts a tree.
  const char* needs = "";
  double least = 0, most = std::numeric_limits<double>::infinity();  // of numbers, which are finite besides
  Choices choices = {};                                              // of texts; none: not checked here
};

// All options but the method's name, which is a row of propose/registry.h, in the order of --help. A new one
// is a field of MethodOptions, a row of the table in options.cpp and its use; a new type is one more
// alternative of Field, read and written in option_values.cpp.
const std::vector<MethodOption>& method_options();

// The option of this word. Throws Error(usage) naming `where` and the words there are.
const MethodOption& find_option(const std::string& word, const std::string& where);

// Whether a method that is not resolved reads the option. Throws Error(usage) for unknown methods and rules.
bool has_use(const MethodOptions& method, const MethodOption& option);

// "relax-k".
std::string flag_name(const MethodOption& option);

bool is_set(const MethodOptions& method, const MethodOption& option);

// Sets an option from a word; numbers of a list stand apart by "/". False where it is not of the type.
bool parse_option(MethodOptions& method, const MethodOption& option, const std::string& text);

// The options that are set, by key, texts as UTF-8. What only relaxed rules read is left out for others.
void write_options(const MethodOptions& method, Json& json);
// The options that `reader` has, by key; a single number is a list, too.
MethodOptions read_options(JsonReader& reader);

// What is given over what was recorded. Where another rule or tree is given, recorded values that followed
// the old one are dropped.
MethodOptions merge_options(const MethodOptions& recorded, const MethodOptions& given);

// The same where a method may be named, too: what belongs to another one is dropped with it.
MethodOptions merge_methods(const MethodOptions& recorded, const MethodOptions& given, bool names_method);

// Whether both say the same, word for word.
bool is_same(const MethodOptions& one, const MethodOptions& other);

// Throws Error(usage) for the first value out of its range or choices.
void check_options(const MethodOptions& method);

}  // namespace lamplighter
