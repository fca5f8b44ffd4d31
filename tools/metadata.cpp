#include "metadata.h"

#include <array>
#include <charconv>
#include <cstdlib>

#include "base/files.h"
#include "lamplighter/error.h"
#include "lamplighter/version.h"

namespace lamplighter::cli {
namespace {

constexpr int kSchema = 1;
constexpr std::int64_t kMaxSide = 1 << 20;  // pixels

// A float as the shortest decimal number that gives it back: 0.9, not 0.8999999761581421.
double shortest(float value) {
  std::array<char, 32> digits{};
  *std::to_chars(digits.data(), digits.data() + digits.size() - 1, value).ptr = '\0';
  return std::strtod(digits.data(), nullptr);
}

}  // namespace

Origin describe_origin(const TextToImage& engine) {
  const std::string device = engine.device();
  return {engine.manifest().name,
          sha256_file(join_path(engine.manifest().directory, "manifest.json"), ExitCode::bundle),
          device.substr(0, device.find(':')), engine.dtype()};
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
  json["method"] = "ar";
  json["cfg_scale"] = shortest(result.sampling.cfg_scale);
  json["cfg_interval"] = result.sampling.cfg_interval;
  json["temperature"] = shortest(result.sampling.temperature);
  json["top_k"] = result.sampling.top_k;
  json["top_p"] = shortest(result.sampling.top_p);
  json["device"] = origin.device;
  json["dtype"] = origin.dtype;
  json["tokens"] = result.statistics.tokens;
  json["target_passes"] = result.statistics.target_passes;
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
          ", Top-p: " + value("top_p") + ", Version: lamplighter " + picture.at("version").get<std::string>();
  return {{"parameters", text}, {"lamplighter", picture.dump()}};
}

Request parse_picture(const Json& picture, const std::string& where) {
  JsonReader reader(picture, where, ExitCode::input);
  reader.integer("schema", kSchema, kSchema);
  for (const char* key : {"version", "model", "method"}) reader.text(key);
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
  return request;
}

Request read_request(const std::string& png_path) {
  std::string text;
  for (const auto& [keyword, value] : read_png_text(png_path)) {
    if (keyword == "lamplighter") text = value;
  }
  if (text.empty()) {
    throw Error(ExitCode::input,
                png_path + ": holds no parameters of lamplighter; was it drawn with --no-metadata?");
  }
  const std::string where = png_path + ": parameters";
  return parse_picture(parse_json(text, where, ExitCode::input), where);
}

}  // namespace lamplighter::cli
