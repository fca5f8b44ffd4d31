#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "acceptance/rules.h"
#include "base/json.h"
#include "draft/registry.h"
#include "lamplighter/bundle.h"
#include "lamplighter/options.h"

namespace lamplighter {

// What decides which options a run reads, and their defaults.
struct MethodContext {
  const MethodOptions& options;  // given, or resolved so far
  const MethodEntry& entry;
  Rule rule;                           // of methods of codes
  bool continuous;                     // the tokens
  const Manifest* manifest = nullptr;  // null: no bundle is known; defaults and ranges of numbers need one
  std::string device = "cpu";
  int batch = 1;
};

// What a value has to be: a number from `least` to `most`, a text one of `choices`; none: any text.
struct Limits {
  double least = 0, most = std::numeric_limits<double>::infinity();
  std::vector<std::string> choices = {};
  std::string why = "";  // the end of a message
};

// An option of a method: what flags, configuration files, the words of `bench --methods`, the metadata of
// images and resolve_method know of it.
struct MethodOption {
  // The kind of field is the option's type: text, integer, number, list of numbers. An empty field is an
  // option that is not set.
  using Field = std::variant<std::string MethodOptions::*, std::optional<std::int64_t> MethodOptions::*,
                             std::optional<float> MethodOptions::*, std::vector<float> MethodOptions::*>;
  using Value = std::variant<std::string, std::int64_t, float>;

  // The value of an option that is read and not set; --help shows `words`, which may be empty.
  struct Usual {
    std::string words = {};
    std::function<Value(const MethodContext&)> value = {};  // none: the option stays without a value
  };

  const char* key;    // in JSON and messages; with dashes for underscores it is the flag
  const char* word;   // in `bench --methods`
  const char* label;  // in the text of an image
  const char* group;  // of --help
  const char* value;  // what --help calls a value
  std::string help;
  Field field;
  std::function<bool(const MethodContext&)> reads;  // whether the run reads it
  Limits limits = {};                               // of any run
  Usual usual = {};
  // More limits of this run, when all options have their values. Limits of texts need no bundle. Throws
  // Error(usage, bundle) for what no limits can say.
  std::function<std::vector<Limits>(const MethodContext&)> narrow = {};
  const char* follows = "";             // key of the option whose change makes a recorded value meaningless
  bool is_common = false;               // whether the short form of --help shows it
  std::vector<std::string> words = {};  // that shells complete, where `limits` has no choices
};

// All options but the method's name, which is a row of draft/registry.h, in the order of --help. A new one
// is a field of MethodOptions and a row of the table in table.cpp; numbers of acceptance rules have their
// rows in acceptance/rules.h.
const std::vector<MethodOption>& method_options();

// The option of this word. Throws Error(usage) naming `where` and the words there are.
const MethodOption& find_option(const std::string& word, const std::string& where);

// For methods that are not resolved. Throw Error(usage) for unknown methods and rules.
Rule rule_of(const MethodOptions& method);
bool is_read(const MethodOptions& method, const MethodOption& option);
// Whether the option may have several values.
bool can_vary(const MethodOptions& method, const MethodOption& option);

// "relax-k".
std::string flag_name(const MethodOption& option);

bool is_set(const MethodOptions& method, const MethodOption& option);

// Sets an option from a word; numbers of a list stand apart by "/". False where it is not of the type.
bool parse_option(MethodOptions& method, const MethodOption& option, const std::string& text);

// The options that are set, by key, texts as UTF-8. What only other rules read is left out.
void write_options(const MethodOptions& method, Json& json);
// The numbers that are set and read, by word: "k 10, lambda 3".
std::string number_words(const MethodOptions& method);

// The options that `reader` has, by key; a single number is a list, too.
MethodOptions read_options(JsonReader& reader);

// Given options over recorded ones. Recorded values that followed another rule or tree are dropped.
MethodOptions merge_options(const MethodOptions& recorded, const MethodOptions& given);

// The same where a method may be named, too: the recorded options of another method are dropped.
MethodOptions merge_methods(const MethodOptions& recorded, const MethodOptions& given, bool names_method);

// Whether all values are equal.
bool is_same(const MethodOptions& one, const MethodOptions& other);

// Throws Error(usage) for the first value out of its range or choices.
void check_options(const MethodOptions& method);

}  // namespace lamplighter
