#include "serve/parse_chat.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "bundle/manifest/text.h"
#include "draft/options/options.h"
#include "image/pixels.h"
#include "pipeline/pixel_encoder.h"
#include "serve/edit.h"
#include "serve/fields.h"
#include "text/cleaning.h"

namespace lamplighter {
namespace {

// Drops the fields of other servers; what looks like a slip stays, and is refused.
void drop_unknown(Json& body, std::vector<std::string>& unused) {
  const std::vector<std::string>& own = chat_fields();
  Json kept = Json::object();
  for (auto& [key, value] : body.items()) {
    const bool is_known = std::find(own.begin(), own.end(), key) != own.end();
    if (is_known || !slip_of(key, own).empty()) {
      kept[key] = std::move(value);
    } else {
      unused.push_back(key);
    }
  }
  body = std::move(kept);
}

void add_line(std::string& text, const std::string& line) {
  text += (text.empty() ? "" : "\n") + line;
}

void read_part(JsonReader& part, ChatWanted& wanted) {
  if (part.choice("type", {"text", "image_url"}) == "text") {
    add_line(wanted.request.prompt, part.text("text"));
    return part.finish();
  }
  if (!wanted.image.empty()) part.fail("got a second image, expected one");
  JsonReader image = part.object("image_url");
  const Json& url = image.value("url");
  if (!url.is_string() || url.get_ref<const std::string&>().rfind("data:", 0) != 0)
    image.reject("url", "an image as a data URL: this server fetches nothing");
  wanted.image = read_base64(url, "image_url", a_readable("file"));
  if (image.has("detail")) image.text("detail");
  image.finish();
  part.finish();
}

void read_messages(JsonReader& reader, const RequestLimits& limits, ChatWanted& wanted) {
  std::vector<JsonReader> messages = reader.objects("messages");
  if (messages.size() != 1)
    reader.fail("messages: got " + counted(messages.size(), "message") +
                ", expected one of role user: the model answers one question about one image");
  JsonReader& message = messages.front();
  message.choice("role", {"user"});
  if (!message.value("content").is_array())
    message.reject("content", "a list of parts, one of them an image of type image_url");
  for (JsonReader& part : message.objects("content")) read_part(part, wanted);
  if (message.has("name")) message.text("name");
  message.finish();
  if (wanted.image.empty()) message.fail("content: got no image, expected a part of type image_url");
  const std::string& prompt = wanted.request.prompt;
  if (prompt.size() > limits.prompt_bytes)
    message.fail("content: got texts of " + counted(prompt.size(), "byte") + ", expected at most " +
                 std::to_string(limits.prompt_bytes));
  check_caption(prompt, std::string(kBody) + ": messages[0].content");
}

void read_sampling(JsonReader& reader, DescribeRequest& request) {
  if (reader.has("temperature")) request.temperature = reader.fp32("temperature");
  if (reader.has("top_p")) request.top_p = reader.fp32("top_p");
  if (reader.has("top_k")) request.top_k = reader.integer("top_k", 0);
  for (const char* key : {"max_tokens", "max_completion_tokens"}) {
    if (reader.has(key)) request.max_tokens = reader.integer(key, 1);
  }
  request.seed = reader.has("seed") ? reader.unsigned_integer("seed") : random_seed();
  if (reader.has("fit")) request.fit = parse_fit(reader.text("fit"));
}

void read_stream(JsonReader& reader, ChatWanted& wanted) {
  wanted.stream = reader.has("stream") && reader.boolean("stream");
  if (!reader.has("stream_options")) return;
  JsonReader options = reader.object("stream_options");
  wanted.with_usage = options.has("include_usage") && options.boolean("include_usage");
  options.finish();
}

}  // namespace

const std::vector<std::string>& chat_fields() {
  static const std::vector<std::string> fields = [] {
    std::vector<std::string> names{"messages",    "model",          "max_tokens", "max_completion_tokens",
                                   "temperature", "top_p",          "top_k",      "seed",
                                   "stream",      "stream_options", "n",          "user",
                                   "fit",         "deadline",       "method",     "tree_paths"};
    for (const MethodOption& option : method_options()) names.emplace_back(option.key);
    return names;
  }();
  return fields;
}

ChatWanted parse_chat(std::string_view body, const RequestRules& rules) {
  return with_http_errors([&] {
    Json json = parse_body(body);
    ChatWanted wanted;
    if (json.is_object()) {
      read_seed_forms(json);
      if (!rules.strict) drop_unknown(json, wanted.unused);
    }
    JsonReader reader(json, kBody, ExitCode::input);
    if (reader.has("model")) wanted.model = reader.text("model");
    if (reader.has("n")) reader.integer("n", 1, 1);
    if (reader.has("user")) reader.text("user");
    read_stream(reader, wanted);
    read_sampling(reader, wanted.request);
    ImagesWanted shared;
    read_deadline(reader, rules.limits, shared);
    read_method(reader, shared);
    wanted.deadline_s = shared.deadline_s;
    wanted.method = std::move(shared.method);
    read_messages(reader, rules.limits, wanted);
    reader.finish();
    return wanted;
  });
}

void require_texts(const Manifest& manifest) {
  if (!manifest.text)
    throw HttpError(501, "not_implemented",
                    "model " + manifest.name + " describes no images: its bundle generates images alone");
  require_image_encoder(manifest);
}

void read_chat_image(const Manifest& manifest, const RequestRules& rules, ChatWanted& wanted,
                     std::vector<std::string>& warnings) {
  require_texts(manifest);
  with_http_errors([&] {
    TextToImage::check(manifest, wanted.request);
    const Grid& grid = manifest.grids.front();
    const Image given = read_one_image(std::exchange(wanted.image, {}));
    wanted.request.image = fit_image(given, grid.width, grid.height, wanted.request.fit);
    if (given.width == grid.width && given.height == grid.height) return;
    const std::string got = "image: got " + sides(given.width, given.height) + " pixels, ";
    const std::string sized = sides(grid.width, grid.height);
    if (rules.strict) throw Error(ExitCode::input, got + "expected " + sized);
    warnings.push_back(got + "it was " + fitted_word(wanted.request.fit) + " to " + sized);
  });
}

}  // namespace lamplighter
