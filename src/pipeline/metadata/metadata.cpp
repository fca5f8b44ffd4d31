#include "pipeline/metadata/metadata.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/files.h"
#include "draft/options/options.h"
#include "draft/registry.h"
#include "lamplighter/error.h"
#include "lamplighter/record.h"
#include "lamplighter/version.h"

namespace lamplighter {
namespace {

constexpr int kSchema = 1;
constexpr const char* kBundleTree = "bundle";    // the tree that the bundle brings for the device
constexpr std::int64_t kMaxSide = 1 << 20;       // pixels
constexpr const char* kSeen = "above and left";  // of a token, by an autoregressive model

// The method's part of an image's description. Methods that draft nothing have their name alone, and the
// number of passes where it is an option.
void describe_method(const Origin& origin, const MethodOptions& method, const Statistics& statistics,
                     Json& json) {
  if (!find_method(method.method).drafts() && !method.steps) return;
  write_options(method, json);
  if (origin.trees.count(method.tree) != 0) json["tree"] = kBundleTree;
  json["step_compression"] = statistics.step_compression();
  json["acceptance_length"] = statistics.acceptance_length();
}

MethodOptions read_method(JsonReader& reader) {
  MethodOptions method = read_options(reader);
  method.method = reader.text("method");
  if (method.tree == kBundleTree) method.tree.clear();
  return method;
}

std::optional<Region> read_region(JsonReader& reader) {
  if (!reader.has("region")) return std::nullopt;
  const std::vector<std::int64_t> sides = reader.integers("region");
  if (sides.size() != 4) reader.fail("region: got " + std::to_string(sides.size()) + " numbers, expected 4");
  const auto side = [&](std::size_t i) {
    return static_cast<int>(std::clamp<std::int64_t>(sides[i], -1, kMaxSide));
  };
  Region region{side(0), side(1), side(2), side(3), reader.text("behind")};
  if (!reader.has("candidates")) return region;
  region.candidates = static_cast<int>(reader.integer("candidates", 1, kMaxSide));
  region.pick = reader.text("pick");
  return region;
}

// A value of the "parameters" text, in quotes where it would parse as several.
std::string quoted(const Json& value) {
  std::string text;
  if (value.is_array()) {
    for (const Json& element : value) text += (text.empty() ? "" : ", ") + element.dump();
  } else {
    text = value.is_string() ? value.get<std::string>() : value.dump();
  }
  return text.find_first_of(",:\n\"") == std::string::npos ? text : Json(text).dump();
}

// ", Rule: lantern++, Tree: chain-4, ...": the options that change the image.
std::string method_words(const Json& image) {
  std::string text;
  for (const MethodOption& option : method_options()) {
    if (image.contains(option.key))
      text += std::string(", ") + option.label + ": " + quoted(image.at(option.key));
  }
  return text;
}

// ", Kept tokens: 100, Region: ...".
std::string kept_words(const Json& image) {
  std::string text;
  const std::pair<const char*, const char*> fields[] = {{"kept_tokens", "Kept tokens"}, {"region", "Region"},
                                                        {"behind", "Behind"},           {"seen", "Seen"},
                                                        {"candidates", "Candidates"},   {"pick", "Pick"}};
  for (const auto& [key, label] : fields) {
    if (image.contains(key)) text += std::string(", ") + label + ": " + quoted(image.at(key));
  }
  return text;
}

}  // namespace

void describe_kept(const Request& request, const Statistics& statistics, Json& json) {
  if (request.kept.empty()) return;
  json["kept_tokens"] = statistics.kept;
  if (!request.region) return;
  const Region& region = *request.region;
  json["region"] = {region.x, region.y, region.width, region.height};
  json["behind"] = region.behind;
  json["seen"] = kSeen;
  if (region.candidates == 1) return;
  json["candidates"] = region.candidates;
  json["pick"] = region.pick;
  json["picked"] = statistics.picked;
  json["log_probabilities"] = statistics.log_probabilities;
  json["passes_of_all"] = statistics.passes_of_all;
}

Origin describe_origin(const TextToImage& engine) {
  const Manifest& manifest = engine.manifest();
  const std::string device = engine.device();
  Origin origin{manifest.name,
                sha256_file(join_path(manifest.directory, "manifest.json"), ExitCode::bundle),
                device.substr(0, device.find(':')),
                engine.dtype(),
                engine.cache_dtype(),
                engine.instructions(),
                {}};
  for (const auto& [kind, file] : manifest.trees) origin.trees.insert(join_path(manifest.directory, file));
  return origin;
}

Json describe_image(const Origin& origin, const Request& request, const Result& result) {
  Json json;
  json["schema"] = kSchema;
  json["version"] = kVersion;
  json["model"] = origin.model;
  json["manifest_sha256"] = origin.manifest_sha256;
  if (request.class_id) {
    json["class"] = *request.class_id;
  } else {
    json["prompt"] = request.prompt;
    if (request.negative_prompt) json["negative_prompt"] = *request.negative_prompt;
    if (!result.cut.empty()) json["cut"] = result.cut;
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
  if (origin.cache_dtype == "int8") json["cache_dtype"] = origin.cache_dtype;
  if (!origin.instructions.empty()) json["instructions"] = origin.instructions;
  describe_kept(request, result.statistics, json);
  json["tokens"] = result.statistics.tokens;
  json["target_passes"] = result.statistics.target_passes;
  describe_method(origin, result.method, result.statistics, json);
  return json;
}

Json tokens_per_pass_rows(const Result& result) {
  const std::vector<std::int64_t> tokens = tokens_per_pass(result);
  Json rows = Json::array();
  for (auto row = tokens.begin(); row != tokens.end(); row += result.codes.columns)
    rows.push_back(std::vector<std::int64_t>(row, row + result.codes.columns));
  return rows;
}

ImageText image_text(const Json& image) {
  std::string text =
      image.contains("prompt") ? image.at("prompt").get<std::string>() : "class " + image.at("class").dump();
  if (image.contains("negative_prompt"))
    text += "\nNegative prompt: " + image.at("negative_prompt").get<std::string>();
  const auto value = [&](const char* key) { return image.at(key).dump(); };
  text += "\nSteps: " + value("target_passes") + ", Sampler: " + image.at("method").get<std::string>() +
          ", CFG scale: " + value("cfg_scale") + ", Seed: " + value("seed") + ", Size: " + value("width") +
          "x" + value("height") + ", Model: " + image.at("model").get<std::string>() +
          ", Temperature: " + value("temperature") + ", Top-k: " + value("top_k") +
          ", Top-p: " + value("top_p") + method_words(image) + kept_words(image) + ", Version: lamplighter " +
          image.at("version").get<std::string>();
  return {{"parameters", text}, {"lamplighter", image.dump()}};
}

Recorded parse_image(const Json& image, const std::string& where) {
  JsonReader reader(image, where, ExitCode::input);
  const auto caption = [&](const char* key) {
    const std::string text = reader.text(key);
    if (text.find('\0') != std::string::npos) reader.fail(std::string(key) + ": got a zero byte");
    return text;
  };
  reader.integer("schema", kSchema, kSchema);
  reader.text("version");
  reader.integer("target_passes", 0);
  Request request;
  if (reader.has("class")) {
    request.class_id = reader.integer("class", 0);
  } else {
    request.prompt = caption("prompt");
    if (reader.has("negative_prompt")) request.negative_prompt = caption("negative_prompt");
  }
  request.seed = reader.unsigned_integer("seed");
  request.width = static_cast<int>(reader.integer("width", 1, kMaxSide));
  request.height = static_cast<int>(reader.integer("height", 1, kMaxSide));
  request.cfg_scale = reader.fp32("cfg_scale");
  request.cfg_interval = reader.integer("cfg_interval");
  request.temperature = reader.fp32("temperature");
  request.top_k = reader.integer("top_k");
  request.top_p = reader.fp32("top_p");
  return {request,
          read_method(reader),
          reader.text("model"),
          reader.text("manifest_sha256"),
          reader.text("dtype"),
          reader.has("cache_dtype") ? reader.text("cache_dtype") : "auto",
          reader.has("instructions") ? reader.text("instructions") : "",
          reader.has("kept_tokens") ? reader.integer("kept_tokens", 1) : 0,
          read_region(reader)};
}

Recorded read_recorded(const std::string& png_path) {
  std::string text;
  for (const auto& [keyword, value] : read_image_text(png_path)) {
    if (keyword == "lamplighter") text = value;
  }
  if (text.empty()) {
    throw Error(ExitCode::input,
                png_path + ": holds no parameters of lamplighter; was it generated without metadata?");
  }
  const std::string where = png_path + ": parameters";
  return parse_image(parse_json(text, where, ExitCode::input), where);
}

}  // namespace lamplighter
