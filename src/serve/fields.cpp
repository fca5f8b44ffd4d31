#include "serve/fields.h"

#include <algorithm>
#include <charconv>
#include <random>
#include <utility>

#include "base/base64.h"
#include "base/suggestion.h"
#include "draft/options/options.h"
#include "pipeline/metadata/request_fields.h"
#include "tree/tree.h"

namespace lamplighter {

// Images of one request have consecutive seeds.
std::uint64_t random_seed() {
  std::random_device random;
  return std::uint64_t{random()} >> 1;
}

Json without_nulls(const Json& object) {
  if (!object.is_object()) return object;
  Json result = Json::object();
  for (const auto& [key, value] : object.items()) {
    if (!value.is_null()) result[key] = value;
  }
  return result;
}

bool is_minus_one(const Json& value) {
  return value.is_number() && !value.is_number_unsigned() && value == -1;
}

void read_seed_forms(Json& object) {
  const auto found = object.find("seed");
  if (found == object.end()) return;
  if (found->is_string()) {
    const std::string text = found->get<std::string>();
    std::uint64_t seed = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
    const bool is_number = error == std::errc() && end == text.data() + text.size();
    if (is_number) *found = seed;
    if (text.empty() || text == "-1") *found = -1;
  }
  if (is_minus_one(*found)) {
    object.erase("seed");
  } else if (!found->is_number_unsigned()) {
    JsonReader(object, kBody, ExitCode::input).reject("seed", "0 to 2^64 - 1, or -1 for a random one");
  }
}

void read_number_forms(Json& object, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    const auto found = object.find(key);
    if (found == object.end()) continue;
    if (found->is_string()) {
      Json number = number_of(found->get_ref<const std::string&>());
      if (!number.is_null()) *found = std::move(number);
    }
    make_whole(*found);
  }
}

void drop_empty_texts(Json& object, const std::vector<std::string>& keys) {
  for (const std::string& key : keys) {
    const auto found = object.find(key);
    if (found != object.end() && *found == "") object.erase(found);
  }
}

std::string read_base64(const Json& value, const char* key, const std::string& expected) {
  const auto refuse = [&] {
    throw Error(ExitCode::input, std::string(key) + ": expected " + expected + " in base64");
  };
  if (!value.is_string()) refuse();
  std::string text = value.get<std::string>();
  if (text.rfind("data:", 0) == 0) text.erase(0, text.find(',') + 1);
  text.erase(std::remove_if(text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; }),
             text.end());
  auto bytes = decode_base64(text);
  if (!bytes || bytes->empty()) refuse();
  return *std::move(bytes);
}

std::string slip_of(const std::string& key, const std::vector<std::string>& known) {
  constexpr std::size_t letters = 8;  // two mistakes in a shorter name make another word
  return did_you_mean(key, known, key.size() < letters ? 1 : 2);
}

void read_method(JsonReader& reader, ImagesWanted& wanted) {
  wanted.method = read_options(reader);
  wanted.names_method = reader.has("method");
  if (wanted.names_method) wanted.method.method = reader.text("method");
  if (is_tree_file(wanted.method.tree))
    reader.reject("tree", "the name of a tree, or tree_paths; a request cannot name files");
  if (!wanted.method.neighbours.empty()) reader.reject("neighbours", "none: a request cannot name files");
}

void read_prompt(JsonReader& reader, const RequestLimits& limits, const Request& request) {
  if (request.class_id) return;
  if (!reader.has("prompt")) reader.reject("prompt", "a caption");
  check_prompt(request.prompt, std::string(kBody) + ": prompt");
  const auto check_size = [&](const char* key, const std::string& text) {
    if (text.size() <= limits.prompt_bytes) return;
    throw Error(ExitCode::input, std::string(kBody) + ": " + key + ": got " + std::to_string(text.size()) +
                                     " bytes, expected at most " + std::to_string(limits.prompt_bytes));
  };
  check_size("prompt", request.prompt);
  check_size("negative_prompt", request.negative_prompt.value_or(""));
}

void read_deadline(JsonReader& reader, const RequestLimits& limits, ImagesWanted& wanted) {
  wanted.deadline_s = limits.deadline_s;
  if (!reader.has("deadline")) return;
  const double given = reader.number("deadline");
  if (given <= 0) reader.reject("deadline", "seconds, more than 0");
  wanted.deadline_s = std::min(given, limits.deadline_s);
}

}  // namespace lamplighter
