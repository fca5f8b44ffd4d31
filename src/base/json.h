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

// Parses JSON. `where` names the text in messages ("bundle/manifest.json", "prompts.jsonl line 3"). Throws
// Error(code); also for a key that an object has twice and for nesting deeper than 200.
Json parse_json(std::string_view text, const std::string& where, ExitCode code);

// Prints JSON on one line in valid UTF-8; invalid bytes are replaced.
std::string to_text(const Json& json);

// The shortest decimal number that reads back as the same float: 0.9, not 0.8999999761581421.
double shortest(float value);

// Reads one JSON object field by field. Messages name the position, the field, the value and the expected
// value, e.g. "manifest.json: grids[0].width: got \"256\", expected an integer >= 1". The JSON value must
// outlive the reader.
class JsonReader {
 public:
  // Throws Error(code) unless `object` is a JSON object.
  JsonReader(const Json& object, std::string where, ExitCode code, std::string path = "");

  bool has(const std::string& key) const {
    asked_.insert(key);
    return object_->contains(key);
  }

  // Read a field. Throw Error when it is missing or has another type.
  const Json& value(const std::string& key);
  std::string text(const std::string& key);
  std::string choice(const std::string& key, const std::vector<std::string>& allowed);
  std::int64_t integer(const std::string& key, std::int64_t least = std::numeric_limits<std::int64_t>::min(),
                       std::int64_t most = std::numeric_limits<std::int64_t>::max());
  std::uint64_t unsigned_integer(const std::string& key);
  double number(const std::string& key);  // finite
  float fp32(const std::string& key);     // finite in fp32
  bool boolean(const std::string& key);
  std::vector<std::string> texts(const std::string& key);
  std::vector<std::int64_t> integers(const std::string& key);
  JsonReader object(const std::string& key);
  std::vector<JsonReader> objects(const std::string& key);                          // an array of objects
  std::vector<std::pair<std::string, JsonReader>> members(const std::string& key);  // an object of objects
  std::vector<std::string> keys() const;                                            // of this object

  // Throws Error when the object has a field that was not read, and lists the known fields.
  void finish() const;

  // Throws Error about a field: "got ..., expected ...".
  [[noreturn]] void reject(const std::string& key, const std::string& expected) const;
  [[noreturn]] void fail(const std::string& message) const;  // about the whole object

 private:
  std::string name(const std::string& key) const;
  const Json& array(const std::string& key, const char* of);

  const Json* object_;
  std::string where_, path_;
  ExitCode code_;
  std::set<std::string> seen_;
  mutable std::set<std::string> asked_;  // the known fields, for the message about an unknown one
};

}  // namespace lamplighter
