#include "serve/openapi.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include "draft/options/options.h"
#include "draft/registry.h"
#include "lamplighter/version.h"
#include "pipeline/region.h"
#include "serve/parse_chat.h"

namespace lamplighter {
namespace {

Json text(const char* meaning) {
  return {{"type", "string"}, {"description", meaning}};
}

Json whole(const char* meaning, std::int64_t least) {
  return {{"type", "integer"}, {"minimum", least}, {"description", meaning}};
}

Json number(const char* meaning, double least) {
  return {{"type", "number"}, {"minimum", least}, {"description", meaning}};
}

Json choice(const char* meaning, const std::vector<std::string>& values) {
  return {{"type", "string"}, {"enum", values}, {"description", meaning}};
}

// The type of an option is the kind of its field.
Json option_schema(const MethodOption& option) {
  constexpr std::size_t kText = 0, kWhole = 1, kNumber = 2;
  Json schema{{"description", option.help}};
  if (option.field.index() == kText) {
    schema["type"] = "string";
    if (!option.limits.choices.empty()) schema["enum"] = option.limits.choices;
    return schema;
  }
  schema["type"] = option.field.index() == kWhole    ? "integer"
                   : option.field.index() == kNumber ? "number"
                                                     : "array";
  if (schema["type"] == "array") {
    schema["items"] = {{"type", "number"}};
  } else if (std::isfinite(option.limits.least)) {
    schema["minimum"] = option.limits.least;
  }
  return schema;
}

// Fields that both forms of requests have.
Json shared_fields(const RequestLimits& limits) {
  Json fields{{"prompt", text("The caption.")},
              {"class", whole("In place of a prompt, for bundles of classes.", 0)},
              {"negative_prompt", text("What guidance leads away from, where the model takes one.")},
              {"seed", whole("Of the first image, up to 2^64 - 1; the next ones count up. -1: random.", -1)},
              {"cfg_scale", number("Guidance.", 0)},
              {"temperature", number("0: always the most probable token.", 0)},
              {"top_k", whole("Most probable tokens that are kept. 0: all.", 0)},
              {"top_p", number("Probability of the tokens that are kept. 1: all.", 0)},
              {"cfg_interval", whole("Tokens that are guided. -1: all.", -1)},
              {"width", whole("Pixels.", 1)},
              {"height", whole("Pixels.", 1)},
              {"deadline", number("Seconds from the request to its last image.", 0)}};
  fields["prompt"]["maxLength"] = limits.prompt_bytes;
  fields["deadline"]["maximum"] = limits.deadline_s;
  std::vector<std::string> names{"auto"};
  for (const MethodEntry& method : methods()) names.emplace_back(method.name);
  fields["method"] = choice("How tokens are drafted and verified.", names);
  for (const MethodOption& option : method_options()) {
    if (option.key != std::string("neighbours")) fields[option.key] = option_schema(option);
  }
  return fields;
}

Json generations_schema(const RequestRules& rules) {
  const RequestLimits& limits = rules.limits;
  Json fields = shared_fields(limits);
  fields["model"] = text("Name of a model.");
  fields["n"] = whole("Images.", 1);
  fields["n"]["maximum"] = limits.images;
  fields["size"] =
      text("WIDTHxHEIGHT, auto, 1K, 2K, 4K, or a shape, 16:9; the nearest of the model's sizes.");
  fields["response_format"] = choice("How images come.", {"b64_json", "url"});
  fields["output_format"] = choice("Kind of file.", {"png", "jpeg", "webp"});
  fields["output_compression"] = whole("Quality of jpeg and webp files; webp at 100 is lossless.", 0);
  fields["output_compression"]["maximum"] = 100;
  const Json path{{"type", "array"}, {"items", {{"type", "integer"}}}};
  fields["tree_paths"] = {
      {"type", "array"}, {"items", path}, {"description", "Beside a tree: the paths of its file."}};
  fields["stream"] = {{"type", "boolean"}, {"description", "Server-sent events while images grow."}};
  fields["partial_images"] = whole("In a stream: images of the rows that are complete so far.", 0);
  fields["partial_images"]["maximum"] = 256;
  for (const char* key : {"user", "quality", "style", "background", "moderation"})
    fields[key] = {{"type", "string"}, {"description", "Changes nothing."}};
  return {{"type", "object"}, {"properties", std::move(fields)}, {"additionalProperties", !rules.strict}};
}

Json txt2img_schema(const RequestLimits& limits) {
  Json fields = shared_fields(limits);
  fields.erase("steps");
  fields["batch_size"] = whole("Images; times n_iter.", 1);
  fields["n_iter"] = whole("Images; times batch_size.", 1);
  fields["sampler_name"] = text("A method, where it is the name of one.");
  fields["send_images"] = {{"type", "boolean"}, {"description", "Whether the answer has the images."}};
  fields["override_settings"] = {{"type", "object"},
                                 {"properties", {{"sd_model_checkpoint", text("Name of a model.")}}}};
  return {{"type", "object"}, {"properties", std::move(fields)}, {"additionalProperties", true}};
}

// What is kept of an image that is given.
void add_kept_part(Json& fields, const RequestLimits& limits) {
  fields["keep_rows"] = whole("In place of a mask: rows of tokens that are kept.", 1);
  fields["keep_tokens"] = whole("In place of a mask: tokens that are kept, row by row.", 1);
  fields["region"] = {
      {"oneOf",
       {{{"type", "string"}, {"pattern", "^[0-9]+,[0-9]+,[0-9]+,[0-9]+$"}},
        {{"type", "array"}, {"items", {{"type", "integer"}}}, {"minItems", 4}, {"maxItems", 4}}}},
      {"description",
       std::string("In place of a mask: X,Y,WIDTH,HEIGHT of a rectangle that is generated anew, in pixels of "
                   "the generated image, rounded outwards to whole tokens; ") +
           kRegionSight + "."}};
  fields["behind"] =
      choice("What lies right of the region and below it: keep (default), or redraw.", {"keep", "redraw"});
  fields["candidates"] = whole(
      "How often the region is generated; one is picked, by the probability of the kept tokens behind it. "
      "Times "
      "the number of images.",
      1);
  fields["candidates"]["maximum"] = limits.images;
  fields["pick"] = choice("Which candidate: best (default, the likeliest), or sample (by probability).",
                          {"best", "sample"});
}

Json edits_schema(const RequestRules& rules) {
  Json schema = generations_schema(rules);
  Json& fields = schema["properties"];
  const auto file = [](const char* meaning) {
    return Json{{"type", "string"}, {"format", "binary"}, {"description", meaning}};
  };
  fields["image"] = file(
      "A PNG, JPEG or WebP file; where nothing else says what is generated anew, its transparent pixels do.");
  fields["mask"] = file(
      "An image with the sides of the other one, transparent below a line or in a rectangle: what is "
      "generated anew.");
  fields["fit"] = choice("How an image of another size gets the model's.", {"crop", "pad", "stretch"});
  add_kept_part(fields, rules.limits);
  schema["required"] = {"image"};
  return schema;
}

Json img2img_schema(const RequestLimits& limits) {
  Json schema = txt2img_schema(limits);
  Json& fields = schema["properties"];
  fields["init_images"] = {{"type", "array"},
                           {"items", {{"type", "string"}}},
                           {"minItems", 1},
                           {"maxItems", 1},
                           {"description", "A PNG, JPEG or WebP file in base64."}};
  fields["mask"] = text(
      "An image in base64 with the sides of the other one, white below a line or in a rectangle: what is "
      "generated anew.");
  fields["inpainting_mask_invert"] = whole("1: black is generated anew.", 0);
  fields["inpainting_mask_invert"]["maximum"] = 1;
  fields["resize_mode"] = whole("An image of another size is stretched (0), cropped (1) or padded (2).", 0);
  add_kept_part(fields, limits);
  schema["required"] = {"init_images"};
  return schema;
}

Json chat_schema(const RequestRules& rules) {
  const Json shared = shared_fields(rules.limits);
  Json fields = Json::object();
  for (const std::string& key : chat_fields()) {
    if (shared.contains(key)) fields[key] = shared.at(key);
  }
  Json url = text("A PNG, JPEG or WebP file as a data URL.");
  url["pattern"] = "^data:";
  const Json image{{"type", "object"}, {"properties", {{"url", url}}}, {"required", {"url"}}};
  const Json parts{{"type", "array"},
                   {"minItems", 1},
                   {"items",
                    {{"type", "object"},
                     {"properties",
                      {{"type", choice("Of the part.", {"text", "image_url"})},
                       {"text", text("A question, or a part of it.")},
                       {"image_url", image}}},
                     {"required", {"type"}}}}};
  const Json message{{"type", "object"},
                     {"properties", {{"role", choice("Who asks.", {"user"})}, {"content", parts}}},
                     {"required", {"role", "content"}}};
  fields["messages"] = {{"type", "array"},
                        {"minItems", 1},
                        {"maxItems", 1},
                        {"items", message},
                        {"description", "One question about one image."}};
  fields["model"] = text("Name of a model that describes images.");
  fields["max_tokens"] = fields["max_completion_tokens"] = whole("Most tokens of the answer.", 1);
  fields["n"] = whole("Answers.", 1);
  fields["n"]["maximum"] = 1;
  fields["fit"] = choice("How an image of another size gets the model's.", {"crop", "pad", "stretch"});
  fields["stream"] = {{"type", "boolean"}, {"description", "Server-sent events while the text grows."}};
  fields["stream_options"] = {{"type", "object"}, {"properties", {{"include_usage", {{"type", "boolean"}}}}}};
  fields["user"] = text("Changes nothing.");
  return {{"type", "object"},
          {"properties", std::move(fields)},
          {"required", {"messages"}},
          {"additionalProperties", !rules.strict}};
}

std::vector<std::string> fields_of(const Json& schema) {
  std::vector<std::string> names{"neighbours"};  // which is refused in words
  for (const auto& field : schema.at("properties").items()) names.push_back(field.key());
  return names;
}

Json body_of(const char* schema, const char* type = "application/json") {
  const Json reference{{"$ref", std::string("#/components/schemas/") + schema}};
  return {{"required", true}, {"content", {{type, {{"schema", reference}}}}}};
}

}  // namespace

const std::vector<std::string>& generation_fields() {
  static const std::vector<std::string> fields = fields_of(generations_schema({}));
  return fields;
}

const std::vector<std::string>& edit_fields() {
  static const std::vector<std::string> fields = [] {
    std::vector<std::string> names = fields_of(edits_schema({}));
    const auto is_shared = [](const std::string& name) {
      const std::vector<std::string>& others = generation_fields();
      return std::find(others.begin(), others.end(), name) != others.end();
    };
    names.erase(std::remove_if(names.begin(), names.end(), is_shared), names.end());
    return names;
  }();
  return fields;
}

Json describe_api(const std::vector<ApiPath>& paths, const RequestRules& rules) {
  Json described = Json::object();
  for (const ApiPath& one : paths) {
    Json operation{
        {"responses",
         {{"200", {{"description", "done"}}}, {"default", {{"description", "an error, in words"}}}}}};
    std::string path = one.path;
    if (path.back() == '*') {
      path = path.substr(0, path.size() - 1) + "{name}";
      operation["parameters"] = Json::array(
          {{{"name", "name"}, {"in", "path"}, {"required", true}, {"schema", {{"type", "string"}}}}});
    }
    if (path == "/v1/images/generations") operation["requestBody"] = body_of("Generations");
    if (path == "/v1/chat/completions") operation["requestBody"] = body_of("Chat");
    if (path == "/sdapi/v1/txt2img") operation["requestBody"] = body_of("Txt2Img");
    if (path == "/v1/images/edits") operation["requestBody"] = body_of("Edits", "multipart/form-data");
    if (path == "/sdapi/v1/img2img") operation["requestBody"] = body_of("Img2Img");
    described[path][one.method == "GET" ? "get" : "post"] = std::move(operation);
  }
  const Json key{{"type", "http"}, {"scheme", "bearer"}}, basic{{"type", "http"}, {"scheme", "basic"}};
  return {{"openapi", "3.1.0"},
          {"info", {{"title", "lamplighter"}, {"version", kVersion}}},
          {"paths", std::move(described)},
          {"components",
           {{"securitySchemes", {{"key", key}, {"basic", basic}}},
            {"schemas",
             {{"Generations", generations_schema(rules)},
              {"Chat", chat_schema(rules)},
              {"Txt2Img", txt2img_schema(rules.limits)},
              {"Edits", edits_schema(rules)},
              {"Img2Img", img2img_schema(rules.limits)}}}}},
          {"security", Json::array({Json::object(), {{"key", Json::array()}}, {{"basic", Json::array()}}})}};
}

}  // namespace lamplighter
