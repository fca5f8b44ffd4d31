#include <algorithm>
#include <array>
#include <initializer_list>
#include <string_view>

#include "base/format.h"
#include "draft/options/options.h"
#include "pipeline/metadata/request_fields.h"
#include "serve/fields.h"
#include "serve/parse.h"

namespace lamplighter {
namespace {

constexpr double kUsualGuidance = 7;  // that the web UI and its clients send unless a person changes it

// Fields that say how an answer is handled, and change no image.
constexpr std::array<std::string_view, 11> kHandling{"send_images",
                                                     "save_images",
                                                     "do_not_save_samples",
                                                     "do_not_save_grid",
                                                     "seed",
                                                     "override_settings",
                                                     "override_settings_restore_afterwards",
                                                     "force_task_id",
                                                     "infotext",
                                                     "comments",
                                                     "negative_prompt"};

// The given fields of an object, where it has them.
Json pick(const Json& object, std::initializer_list<const char*> keys) {
  Json result = Json::object();
  for (const char* key : keys) {
    if (object.contains(key)) result[key] = object.at(key);
  }
  return result;
}

// Values by which clients say that they want nothing of a field.
bool is_nothing(const Json& value) {
  return value.is_null() || value == false || value == 0 || is_minus_one(value) || value == "" ||
         (value.is_structured() && value.empty());
}

bool counts(const Json& guidance, ClientGuidance rule) {
  if (rule == ClientGuidance::automatic) return guidance != kUsualGuidance;
  return rule == ClientGuidance::always;
}

// The fields that requests of this form may set.
Json known_fields(const Json& body, const RequestRules& rules) {
  Json known =
      pick(body, {"prompt", "negative_prompt", "class", "seed", "cfg_scale", "temperature", "top_p", "top_k",
                  "cfg_interval", "width", "height", "batch_size", "n_iter", "deadline", "method"});
  read_seed_forms(known);
  read_number_forms(known, {"class", "cfg_scale", "temperature", "top_p", "top_k", "cfg_interval", "width",
                            "height", "batch_size", "n_iter", "deadline"});
  if (known.contains("negative_prompt") && known["negative_prompt"] == "") known.erase("negative_prompt");
  if (known.contains("cfg_scale") && !counts(known["cfg_scale"], rules.webui_guidance))
    known.erase("cfg_scale");
  for (const MethodOption& option : method_options()) {
    if (option.key == std::string("steps")) continue;  // in the form, steps belong to its own samplers
    if (body.contains(option.key)) known[option.key] = body.at(option.key);
  }
  return known;
}

void read_settings(const Json& body, ImagesWanted& wanted) {
  if (!body.contains("override_settings")) return;
  const Json settings = without_nulls(body.at("override_settings"));
  JsonReader reader(settings, kBody, ExitCode::input, "override_settings");
  if (reader.has("sd_model_checkpoint")) wanted.model = reader.text("sd_model_checkpoint");
  for (const auto& [key, value] : settings.items()) {
    if (key != "sd_model_checkpoint" && !is_nothing(value))
      wanted.unused.push_back("override_settings." + key);
  }
}

}  // namespace

ImagesWanted parse_txt2img(const Json& body, const RequestRules& rules) {
  return with_http_errors([&] {
    const JsonReader whole(body, kBody, ExitCode::input);  // an object
    const Json known = known_fields(body, rules);
    JsonReader reader(known, kBody, ExitCode::input);
    ImagesWanted wanted;
    wanted.is_lenient = !rules.strict;
    read_settings(body, wanted);
    for (const char* key : {"sampler_name", "sampler_index"}) {
      if (wanted.sampler.empty() && body.contains(key) && body[key].is_string())
        wanted.sampler = body[key].get<std::string>();
    }
    wanted.sends_images = !body.contains("send_images") || body["send_images"] != false;
    const auto count = [&](const char* key) {
      return reader.has(key) ? reader.integer(key, 1, rules.limits.images) : 1;
    };
    wanted.count = count("batch_size") * count("n_iter");
    if (wanted.count > rules.limits.images) {
      reader.fail("batch_size, n_iter: got " + counted(wanted.count, "image") + ", expected at most " +
                  std::to_string(rules.limits.images));
    }
    read_deadline(reader, rules.limits, wanted);
    read_method(reader, wanted);
    wanted.request.seed = read_request_fields(reader, wanted.request).value_or(random_seed());
    read_prompt(reader, rules.limits, wanted.request);
    for (const auto& [key, value] : body.items()) {
      const bool is_handled = std::find(kHandling.begin(), kHandling.end(), key) != kHandling.end();
      const bool is_sampler = !wanted.sampler.empty() && (key == "sampler_name" || key == "sampler_index");
      if (!known.contains(key) && !is_handled && !is_sampler && !is_nothing(value))
        wanted.unused.push_back(key);
    }
    return wanted;
  });
}

}  // namespace lamplighter
