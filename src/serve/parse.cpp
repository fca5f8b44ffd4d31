#include "serve/parse.h"

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <random>

#include "base/utf8.h"
#include "lamplighter/pipeline.h"
#include "pipeline/requests/request_fields.h"
#include "propose/options/options.h"
#include "serve/refusal.h"
#include "tree/tree.h"

namespace lamplighter {
namespace {

constexpr const char* kBody = "body";

// Pictures of one request have seeds that follow one another.
std::uint64_t random_seed() {
  std::random_device random;
  return std::uint64_t{random()} >> 1;
}

// A field that is null is not given.
Json without_nulls(const Json& object) {
  if (!object.is_object()) return object;
  Json result = Json::object();
  for (const auto& [key, value] : object.items()) {
    if (!value.is_null()) result[key] = value;
  }
  return result;
}

// "256x256" or "auto".
void read_size(JsonReader& reader, Request& request) {
  if (!reader.has("size")) return;
  const std::string size = reader.text("size");
  if (size == "auto") return;
  if (reader.has("width") || reader.has("height"))
    reader.fail("got size and width or height, expected one of them");
  const char* end = size.data() + size.size();
  const auto [middle, bad_width] = std::from_chars(size.data(), end, request.width);
  const bool has_height = bad_width == std::errc() && middle != end && *middle == 'x';
  const auto [rest, bad_height] =
      has_height ? std::from_chars(middle + 1, end, request.height) : std::from_chars_result{end, {}};
  if (!has_height || bad_height != std::errc() || rest != end || request.width < 1 || request.height < 1)
    reader.reject("size", "\"WIDTHxHEIGHT\" or \"auto\"");
}

// Fields of OpenAI's that change nothing here, but have to be of their kind.
void read_idle_fields(JsonReader& reader) {
  for (const char* key : {"user", "quality", "style", "background", "moderation"}) {
    if (reader.has(key)) reader.text(key);
  }
  if (reader.has("output_compression")) reader.integer("output_compression", 0, 100);
  if (reader.has("output_format")) reader.choice("output_format", {"png"});
}

void read_method(JsonReader& reader, PicturesWanted& wanted) {
  wanted.method = read_options(reader);
  wanted.names_method = reader.has("method");
  if (wanted.names_method) wanted.method.method = reader.text("method");
  if (is_tree_file(wanted.method.tree)) reader.reject("tree", "the name of a tree, or tree_paths: no file");
  if (!wanted.method.neighbours.empty()) reader.reject("neighbours", "nothing: requests name no files");
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

void read_deadline(JsonReader& reader, const RequestLimits& limits, PicturesWanted& wanted) {
  wanted.deadline_s = limits.deadline_s;
  if (!reader.has("deadline")) return;
  const double given = reader.number("deadline");
  if (given <= 0) reader.reject("deadline", "seconds, more than 0");
  wanted.deadline_s = std::min(given, limits.deadline_s);
}

// f() with what it says wrong as a refusal.
template <class F>
auto with_refusals(F f) {
  try {
    return f();
  } catch (const Refusal&) {
    throw;
  } catch (const Error& error) {
    throw to_refusal(error);
  }
}

// Which method a bundle lacks something for is for the request to say.
void check(const Manifest& manifest, const Request& request) {
  try {
    TextToImage::check(manifest, request);
  } catch (const Error& error) {
    if (error.code() != ExitCode::bundle) throw;
    throw Refusal(400, "not_supported", error.what());
  }
}

// Those of the given fields that an object has.
Json pick(const Json& object, std::initializer_list<const char*> keys) {
  Json result = Json::object();
  for (const char* key : keys) {
    if (object.contains(key)) result[key] = object.at(key);
  }
  return result;
}

}  // namespace

Refusal to_refusal(const Error& error) {
  if (const auto* refusal = dynamic_cast<const Refusal*>(&error)) return *refusal;
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
  return with_refusals([&] {
    if (find_invalid_utf8(body) != std::string_view::npos)
      throw Error(ExitCode::input, "body: no valid JSON: bytes that are no UTF-8");
    return without_nulls(parse_json(body, kBody, ExitCode::input));
  });
}

PicturesWanted parse_generations(std::string_view body, const RequestLimits& limits) {
  return with_refusals([&] {
    const Json json = parse_body(body);
    JsonReader reader(json, kBody, ExitCode::input);
    PicturesWanted wanted;
    if (reader.has("model")) wanted.model = reader.text("model");
    if (reader.has("n")) wanted.count = reader.integer("n", 1, limits.pictures);
    const bool formatted = reader.has("response_format");
    wanted.by_url = formatted && reader.choice("response_format", {"b64_json", "url"}) == "url";
    wanted.stream = reader.has("stream") && reader.boolean("stream");
    if (reader.has("partial_images")) wanted.partial_images = reader.integer("partial_images", 0, 256);
    read_idle_fields(reader);
    read_deadline(reader, limits, wanted);
    read_method(reader, wanted);
    wanted.request.seed = read_request_fields(reader, wanted.request).value_or(random_seed());
    read_size(reader, wanted.request);
    reader.finish();
    read_prompt(reader, limits, wanted.request);
    return wanted;
  });
}

PicturesWanted parse_txt2img(const Json& body, const RequestLimits& limits) {
  return with_refusals([&] {
    const JsonReader whole(body, kBody, ExitCode::input);  // an object
    Json known = pick(
        body, {"prompt", "negative_prompt", "class", "seed", "cfg_scale", "temperature", "top_p", "top_k",
               "cfg_interval", "width", "height", "batch_size", "n_iter", "deadline", "method"});
    if (known.contains("seed") && known["seed"] == -1) known.erase("seed");
    if (known.contains("negative_prompt") && known["negative_prompt"] == "") known.erase("negative_prompt");
    for (const MethodOption& option : method_options()) {
      if (option.key == std::string("steps")) continue;  // the form's are those of its own samplers
      if (body.contains(option.key)) known[option.key] = body.at(option.key);
    }
    JsonReader reader(known, kBody, ExitCode::input);
    PicturesWanted wanted;
    if (body.contains("override_settings")) {
      const Json settings = without_nulls(body.at("override_settings"));
      JsonReader overriding(settings, kBody, ExitCode::input, "override_settings");
      if (overriding.has("sd_model_checkpoint")) wanted.model = overriding.text("sd_model_checkpoint");
    }
    const auto count = [&](const char* key) {
      return reader.has(key) ? reader.integer(key, 1, limits.pictures) : 1;
    };
    wanted.count = count("batch_size") * count("n_iter");
    if (wanted.count > limits.pictures) {
      reader.fail("batch_size, n_iter: got " + std::to_string(wanted.count) + " pictures, expected at most " +
                  std::to_string(limits.pictures));
    }
    read_deadline(reader, limits, wanted);
    read_method(reader, wanted);
    wanted.request.seed = read_request_fields(reader, wanted.request).value_or(random_seed());
    read_prompt(reader, limits, wanted.request);
    return wanted;
  });
}

std::vector<Request> requests_for(const PicturesWanted& wanted, const Manifest& manifest,
                                  const MethodOptions& method, const RequestLimits& limits) {
  return with_refusals([&] {
    Request request = wanted.request;
    request.method = merge_methods(method, wanted.method, wanted.names_method);
    check(manifest, request);
    const Grid& grid = find_grid(manifest, request.width, request.height);
    const std::int64_t pixels = std::int64_t{grid.width} * grid.height;
    if (pixels > limits.pixels) {
      throw Error(ExitCode::usage, "size: got " + std::to_string(grid.width) + "x" +
                                       std::to_string(grid.height) + ", expected at most " +
                                       std::to_string(limits.pixels) + " pixels");
    }
    std::vector<Request> requests(static_cast<std::size_t>(wanted.count), request);
    for (std::size_t i = 0; i < requests.size(); ++i) requests[i].seed += i;
    return requests;
  });
}

}  // namespace lamplighter
