#include "serve/parse.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/lines.h"
#include "base/utf8.h"
#include "image/formats.h"
#include "pipeline/metadata/request_fields.h"
#include "serve/fields.h"
#include "serve/http/request.h"
#include "serve/openapi.h"

namespace lamplighter {
namespace {

// Fields of OpenAI's that change nothing here.
constexpr std::array kIdle{"quality", "style", "background", "moderation"};

// Fields of other servers that look like ours misspelt.
const std::set<std::string> kForeign{"cfg_rescale",
                                     "cfg_scale_2",
                                     "mode",
                                     "models",
                                     "negative_prompt2",
                                     "negative_prompt_2",
                                     "negative_prompt_3",
                                     "prompt2",
                                     "prompt_2",
                                     "prompt_3",
                                     "step",
                                     "styles",
                                     "top_a",
                                     "weight"};

// The bytes of the sign between two sides at the front of a text: x, or what clients of other servers write.
std::size_t sign_bytes(std::string_view text, bool strict) {
  for (const std::string_view sign : {"x", "*", "\u00d7"}) {
    if (text.substr(0, sign.size()) == sign) return sign.size();
    if (strict) break;
  }
  return 0;
}

// Two numbers from 1 with one sign between them, and nothing else.
struct TwoNumbers {
  int first = 0, second = 0;
};
std::optional<TwoNumbers> read_two(std::string_view text,
                                   const std::function<std::size_t(std::string_view)>& sign_of) {
  TwoNumbers numbers;
  const char* end = text.data() + text.size();
  const auto [middle, bad_first] = std::from_chars(text.data(), end, numbers.first);
  if (bad_first != std::errc()) return std::nullopt;
  const std::size_t sign = sign_of(text.substr(static_cast<std::size_t>(middle - text.data())));
  const auto [rest, bad_second] = std::from_chars(middle + sign, end, numbers.second);
  if (sign == 0 || bad_second != std::errc() || rest != end || numbers.first < 1 || numbers.second < 1)
    return std::nullopt;
  return numbers;
}

// Without blanks, in lower case.
std::string plain_size(std::string_view given) {
  std::string size = lower_case(given);
  size.erase(
      std::remove_if(size.begin(), size.end(),
                     [](char c) { return std::string_view(kBlanks).find(c) != std::string_view::npos; }),
      size.end());
  return size;
}

// What other servers take besides: "2K", a square of 2048 pixels a side; "16:9", this shape with about as
// many pixels as 1024x1024.
std::optional<TwoNumbers> read_loose_size(std::string_view size) {
  constexpr int kilo = 1024;
  for (const int times : {1, 2, 4}) {
    if (size == std::to_string(times) + "k") return TwoNumbers{times * kilo, times * kilo};
  }
  auto shape = read_two(size, [](std::string_view text) { return text.substr(0, 1) == ":" ? 1U : 0U; });
  if (!shape || shape->first > kilo || shape->second > kilo) return std::nullopt;
  const int times = std::max(1, static_cast<int>(kilo / std::sqrt(shape->first * shape->second)));
  return TwoNumbers{shape->first * times, shape->second * times};
}

// "256x256" or "auto". Clients that send all of them set width and height only when a person does.
void read_size(JsonReader& reader, const RequestRules& rules, ImagesWanted& wanted) {
  Request& request = wanted.request;
  if (!reader.has("size")) return;
  const std::string size = rules.strict ? reader.text("size") : plain_size(reader.text("size"));
  if (size == "auto") return;
  if (reader.has("width") || reader.has("height")) {
    if (rules.strict) reader.fail("got size and width or height, expected one of them");
    wanted.unused.emplace_back("size");
    return;
  }
  auto found = read_two(size, [&](std::string_view text) { return sign_bytes(text, rules.strict); });
  if (!found && !rules.strict) found = read_loose_size(size);
  if (!found) reader.reject("size", "\"WIDTHxHEIGHT\" or \"auto\"");
  request.width = found->first;
  request.height = found->second;
}

void read_format(JsonReader& reader, ImageFormat& format) {
  if (reader.has("output_format")) {
    format.name = reader.choice("output_format", {"png", "jpeg", "jpg", "webp"});
    if (format.name == "jpg") format.name = "jpeg";
    if (format.name == "webp" && !has_libwebp())
      reader.reject("output_format", "png or jpeg: this build has no libwebp");
  }
  if (!reader.has("output_compression")) return;
  const int quality = static_cast<int>(reader.integer("output_compression", 0, 100));
  if (format.name != "png") format.quality = format.name == "jpeg" ? std::max(1, quality) : quality;
}

void read_idle_fields(JsonReader& reader, ImagesWanted& wanted) {
  if (reader.has("user")) reader.text("user");
  for (const char* key : kIdle) {
    if (reader.has(key) && reader.text(key) != "auto") wanted.unused.emplace_back(key);
  }
}

// "" stands for a field that is not given, but in captions.
void drop_empty(Json& body) {
  std::vector<std::string> fields = generation_fields();
  fields.erase(std::remove_if(fields.begin(), fields.end(),
                              [](const auto& key) { return key == "prompt" || key == "negative_prompt"; }),
               fields.end());
  drop_empty_texts(body, fields);
}

// Takes out what belongs to another server and changes nothing. What looks like a slip stays, and is refused.
void drop_foreign(Json& body, std::vector<std::string>& unused) {
  const std::vector<std::string>& own = generation_fields();
  Json kept = Json::object();
  for (auto& [key, value] : body.items()) {
    const bool is_foreign =
        kForeign.count(key) != 0 ||
        (std::find(own.begin(), own.end(), key) == own.end() && slip_of(key, own).empty());
    if (is_foreign) {
      unused.push_back(key);
    } else {
      kept[key] = std::move(value);
    }
  }
  body = std::move(kept);
}

// At least as many as the text has. A value of a few bytes takes a hundred in memory, so they are counted
// before they are read.
std::size_t count_values(std::string_view json) {
  std::size_t count = 1;
  bool is_text = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    if (json[i] == '"') is_text = !is_text;
    if (json[i] == '\\') ++i;  // what follows ends no text
    if (!is_text && (json[i] == ',' || json[i] == '[' || json[i] == '{')) ++count;
  }
  return count;
}

}  // namespace

HttpError to_http_error(const Error& error) {
  if (const auto* http = dynamic_cast<const HttpError*>(&error)) return *http;
  switch (error.code()) {
    case ExitCode::usage:
    case ExitCode::input:
      return {400, "invalid_value", error.what()};
    case ExitCode::memory:
      return {503, "out_of_memory", error.what(), 10};
    default:
      return {500, "internal_error", error.what()};
  }
}

Json parse_body(std::string_view body) {
  return with_http_errors([&] {
    if (find_invalid_utf8(body) != std::string_view::npos)
      throw Error(ExitCode::input, "body: invalid JSON: bytes that are not UTF-8");
    if (count_values(body) > kMostValues)
      throw Error(ExitCode::input, "body: got more than " + std::to_string(kMostValues) + " values");
    Json json = without_nulls(parse_json(body, kBody, ExitCode::input));
    if (json.is_object()) {
      for (auto& field : json) make_whole(field);
    }
    return json;
  });
}

ImagesWanted parse_generations(std::string_view body, const RequestRules& rules) {
  return with_http_errors([&] {
    Json json = parse_body(body);
    if (json.is_object()) {
      read_seed_forms(json);
      drop_empty(json);
    }
    ImagesWanted wanted;
    if (json.is_object() && !rules.strict) drop_foreign(json, wanted.unused);
    JsonReader reader(json, kBody, ExitCode::input);
    wanted.is_lenient = !rules.strict;
    if (reader.has("model")) wanted.model = reader.text("model");
    if (reader.has("n")) wanted.count = reader.integer("n", 1, rules.limits.images);
    const bool formatted = reader.has("response_format");
    wanted.by_url = formatted && reader.choice("response_format", {"b64_json", "url"}) == "url";
    wanted.stream = reader.has("stream") && reader.boolean("stream");
    if (reader.has("partial_images")) wanted.partial_images = reader.integer("partial_images", 0, 256);
    read_format(reader, wanted.format);
    if (reader.has("output_compression") && wanted.format.name == "png")
      wanted.unused.emplace_back("output_compression");
    if (wanted.partial_images > 0 && !wanted.stream) wanted.unused.emplace_back("partial_images");
    read_idle_fields(reader, wanted);
    read_deadline(reader, rules.limits, wanted);
    read_method(reader, wanted);
    wanted.request.seed = read_request_fields(reader, wanted.request).value_or(random_seed());
    read_size(reader, rules, wanted);
    reader.finish();
    read_prompt(reader, rules.limits, wanted.request);
    return wanted;
  });
}

}  // namespace lamplighter
