#include "pipeline/metadata.h"

#include <array>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/utf8.h"
#include "lamplighter/error.h"
#include "lamplighter/version.h"

namespace lamplighter {
namespace {

constexpr int kSchema = 1;
constexpr const char* kBundleTree = "bundle";  // the tree that the bundle brings for the device
constexpr std::int64_t kMaxSide = 1 << 20;     // pixels

// A float as the shortest decimal number that gives it back: 0.9, not 0.8999999761581421.
double shortest(float value) {
  std::array<char, 32> digits{};
  *std::to_chars(digits.data(), digits.data() + digits.size() - 1, value).ptr = '\0';
  return std::strtod(digits.data(), nullptr);
}

// Flags and texts of a method; empty ones are left out.
std::vector<std::pair<const char*, std::string MethodOptions::*>> method_texts() {
  using M = MethodOptions;
  return {{"rule", &M::rule},
          {"tree", &M::tree},
          {"children", &M::children},
          {"residual", &M::residual},
          {"drafter", &M::drafter},
          {"draft_guidance", &M::draft_guidance},
          {"neighbours", &M::neighbours}};
}

std::vector<std::pair<const char*, std::optional<int> MethodOptions::*>> dynamic_numbers() {
  using M = MethodOptions;
  return {{"dynamic_depth", &M::dynamic_depth},
          {"dynamic_width", &M::dynamic_width},
          {"dynamic_nodes", &M::dynamic_nodes}};
}

// The method's part of a picture's description, under the names of the flags. Autoregression has none but
// its name; what only relaxed rules read is left out for others.
void describe_method(const Origin& origin, const MethodOptions& method, const Statistics& statistics,
                     Json& json) {
  if (method.method == "ar") return;
  const bool relaxed = method.delta || !method.lambda.empty();
  for (const auto& [key, field] : method_texts()) {
    if (field == &MethodOptions::residual && !relaxed) continue;
    // Names of files may hold any bytes, texts of a PNG file may not.
    if (!(method.*field).empty()) json[key] = encode_utf8(decode_utf8(method.*field));
  }
  if (origin.trees.count(method.tree) != 0) json["tree"] = kBundleTree;
  if (method.k && relaxed) json["relax_k"] = *method.k;
  if (method.delta) json["delta"] = shortest(*method.delta);
  if (!method.lambda.empty()) {
    json["lambda"] = Json::array();
    for (const float factor : method.lambda) json["lambda"].push_back(shortest(factor));
  }
  for (const auto& [key, field] : dynamic_numbers()) {
    if (method.*field) json[key] = *(method.*field);
  }
  json["step_compression"] = statistics.step_compression();
  json["acceptance_length"] = statistics.acceptance_length();
}

MethodOptions parse_method(JsonReader& reader) {
  constexpr std::int64_t kMost = 1 << 20;
  MethodOptions method;
  method.method = reader.text("method");
  for (const auto& [key, field] : method_texts()) {
    if (reader.has(key)) method.*field = reader.text(key);
  }
  if (method.tree == kBundleTree) method.tree.clear();
  if (reader.has("relax_k")) method.k = reader.integer("relax_k", 0);
  if (reader.has("delta")) method.delta = static_cast<float>(reader.number("delta"));
  if (reader.has("lambda")) {
    for (const Json& factor : reader.value("lambda")) {
      if (!factor.is_number()) reader.reject("lambda", "a list of numbers");
      method.lambda.push_back(factor.get<float>());
    }
  }
  for (const auto& [key, field] : dynamic_numbers()) {
    if (reader.has(key)) method.*field = static_cast<int>(reader.integer(key, 0, kMost));
  }
  return method;
}

// A value of the "parameters" text: quoted where it would read as several.
std::string quoted(const Json& value) {
  std::string text;
  if (value.is_array()) {
    for (const Json& element : value) text += (text.empty() ? "" : ", ") + element.dump();
  } else {
    text = value.is_string() ? value.get<std::string>() : value.dump();
  }
  return text.find_first_of(",:\n\"") == std::string::npos ? text : Json(text).dump();
}

// ", Rule: lantern++, Tree: chain-4, ...": what makes the picture another than the autoregressive one.
std::string method_words(const Json& picture) {
  constexpr std::array<std::pair<const char*, const char*>, 13> names{{{"rule", "Rule"},
                                                                       {"tree", "Tree"},
                                                                       {"children", "Children"},
                                                                       {"relax_k", "Relax-k"},
                                                                       {"delta", "Delta"},
                                                                       {"lambda", "Lambda"},
                                                                       {"residual", "Residual"},
                                                                       {"drafter", "Drafter"},
                                                                       {"draft_guidance", "Draft guidance"},
                                                                       {"neighbours", "Neighbours"},
                                                                       {"dynamic_depth", "Dynamic depth"},
                                                                       {"dynamic_width", "Dynamic width"},
                                                                       {"dynamic_nodes", "Dynamic nodes"}}};
  std::string text;
  for (const auto& [key, name] : names) {
    if (picture.contains(key)) text += std::string(", ") + name + ": " + quoted(picture.at(key));
  }
  return text;
}

}  // namespace

Origin describe_origin(const TextToImage& engine) {
  const Manifest& manifest = engine.manifest();
  const std::string device = engine.device();
  Origin origin{manifest.name,
                sha256_file(join_path(manifest.directory, "manifest.json"), ExitCode::bundle),
                device.substr(0, device.find(':')),
                engine.dtype(),
                {}};
  for (const auto& [kind, file] : manifest.trees) origin.trees.insert(join_path(manifest.directory, file));
  return origin;
}

Json describe_picture(const Origin& origin, const Request& request, const Result& result) {
  Json json;
  json["schema"] = kSchema;
  json["version"] = kVersion;
  json["model"] = origin.model;
  json["manifest_sha256"] = origin.manifest_sha256;
  if (request.class_id) {
    json["class"] = *request.class_id;
  } else {
    json["prompt"] = request.prompt;
  }
  json["seed"] = result.seed;
  json["width"] = result.image.width;
  json["height"] = result.image.height;
  json["method"] = result.method.method;
  json["cfg_scale"] = shortest(result.sampling.cfg_scale);
  json["cfg_interval"] = result.sampling.cfg_interval;
  json["temperature"] = shortest(result.sampling.temperature);
  json["top_k"] = result.sampling.top_k;
  json["top_p"] = shortest(result.sampling.top_p);
  json["device"] = origin.device;
  json["dtype"] = origin.dtype;
  json["tokens"] = result.statistics.tokens;
  json["target_passes"] = result.statistics.target_passes;
  describe_method(origin, result.method, result.statistics, json);
  return json;
}

PngText png_text(const Json& picture) {
  std::string text = picture.contains("prompt") ? picture.at("prompt").get<std::string>()
                                                : "class " + picture.at("class").dump();
  const auto value = [&](const char* key) { return picture.at(key).dump(); };
  text += "\nSteps: " + value("target_passes") + ", Sampler: " + picture.at("method").get<std::string>() +
          ", CFG scale: " + value("cfg_scale") + ", Seed: " + value("seed") + ", Size: " + value("width") +
          "x" + value("height") + ", Model: " + picture.at("model").get<std::string>() +
          ", Temperature: " + value("temperature") + ", Top-k: " + value("top_k") +
          ", Top-p: " + value("top_p") + method_words(picture) + ", Version: lamplighter " +
          picture.at("version").get<std::string>();
  return {{"parameters", text}, {"lamplighter", picture.dump()}};
}

Recorded parse_picture(const Json& picture, const std::string& where) {
  JsonReader reader(picture, where, ExitCode::input);
  reader.integer("schema", kSchema, kSchema);
  reader.text("version");
  reader.integer("target_passes", 0);
  Request request;
  if (reader.has("class")) {
    request.class_id = reader.integer("class", 0);
  } else {
    request.prompt = reader.text("prompt");
  }
  request.seed = reader.unsigned_integer("seed");
  request.width = static_cast<int>(reader.integer("width", 1, kMaxSide));
  request.height = static_cast<int>(reader.integer("height", 1, kMaxSide));
  request.cfg_scale = static_cast<float>(reader.number("cfg_scale"));
  request.cfg_interval = reader.integer("cfg_interval");
  request.temperature = static_cast<float>(reader.number("temperature"));
  request.top_k = reader.integer("top_k");
  request.top_p = static_cast<float>(reader.number("top_p"));
  return {request, parse_method(reader), reader.text("model"), reader.text("manifest_sha256"),
          reader.text("dtype")};
}

Recorded read_recorded(const std::string& png_path) {
  std::string text;
  for (const auto& [keyword, value] : read_png_text(png_path)) {
    if (keyword == "lamplighter") text = value;
  }
  if (text.empty()) {
    throw Error(ExitCode::input,
                png_path + ": holds no parameters of lamplighter; was it drawn without metadata?");
  }
  const std::string where = png_path + ": parameters";
  return parse_picture(parse_json(text, where, ExitCode::input), where);
}

}  // namespace lamplighter
