#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lamplighter/error.h"

namespace lamplighter {

using Json = nlohmann::ordered_json;

// Parses a JSON text. `where` names it in messages ("bundle/manifest.json", "prompts.jsonl line 3"). Throws
// Error(code), also where an object has a key twice and where values are nested more than 200 deep.
Json parse_json(std::string_view text, const std::string& where, ExitCode code);

// A JSON value on one line, in valid UTF-8 whatever its texts hold.
std::string to_text(const Json& json);

// A float as the shortest decimal number that gives it back: 0.9, not 0.8999999761581421.
double shortest(float value);

// Reads one JSON object field by field. Every complaint names the place, the field, what was found and what
// was expected, e.g. "manifest.json: grids[0].width: got \"256\", expected an integer >= 1". The JSON value
// must outlive the reader.
class JsonReader {
 public:
  // Throws Error(code) unless `object` is a JSON object.
  JsonReader(const Json& object, std::string where, ExitCode code, std::string path = "");

  bool has(const std::string& key) const {
    asked_.insert(key);
    return object_->contains(key);
  }

  // Each throws Error when the field is missing or of another kind.
  const Json& value(const std::string& key);
  std::string text(const std::string& key);
  std::string choice(const std::string& key, const std::vector<std::string>& allowed);
  std::int64_t integer(const std::string& key, std::int64_t least = std::numeric_limits<std::int64_t>::min(),
                       std::int64_t most = std::numeric_limits<std::int64_t>::max());
  std::uint64_t unsigned_integer(const std::string& key);
  double number(const std::string& key);  // finite
  bool boolean(const std::string& key);
  std::vector<std::string> texts(const std::string& key);
  std::vector<std::int64_t> integers(const std::string& key);
  JsonReader object(const std::string& key);
  std::vector<JsonReader> objects(const std::string& key);                          // an array of objects
  std::vector<std::pair<std::string, JsonReader>> members(const std::string& key);  // an object of objects
  std::vector<std::string> keys() const;                                            // of this object

  // Throws Error when the object has a field that nobody asked for; names those that it may have.
  void finish() const;

  // Throws Error about a field: "got ..., expected ...".
  [[noreturn]] void reject(const std::string& key, const std::string& expected) const;
  [[noreturn]] void fail(const std::string& message) const;  // about the object as a whole

 private:
  std::string name(const std::string& key) const;
  const Json& array(const std::string& key, const char* of);

  const Json* object_;
  std::string where_, path_;
  ExitCode code_;
  std::set<std::string> seen_;
  mutable std::set<std::string> asked_;  // for the message about a field that is not among them
};

}  // namespace lamplighter
