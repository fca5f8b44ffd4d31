#include <fstream>
#include <utility>

#include "base/memory.h"
#include "draft/registry.h"
#include "tools/serve/routes.h"

// What the web UI's clients list: models, samplers, and much that a server of this kind has none of.
namespace lamplighter::cli {
namespace {

Json models_of(const Service& service) {
  Json all = Json::array();
  for (const auto& model : service.models()) {
    const std::string& sha256 = model->origin.manifest_sha256;
    all.push_back({{"title", model->name()},
                   {"model_name", model->name()},
                   {"hash", sha256.substr(0, 10)},
                   {"sha256", sha256},
                   {"filename", model->name()},
                   {"config", nullptr}});
  }
  return all;
}

// The methods stand where other servers have samplers: txt2img takes their names as sampler_name.
Json samplers_of(const Service& service) {
  Json all = Json::array();
  for (const MethodEntry& method : methods()) {
    for (const auto& model : service.models()) {
      if (!missing_for(method, model->engine.manifest()).empty()) continue;
      all.push_back({{"name", method.name}, {"aliases", Json::array()}, {"options", Json::object()}});
      break;
    }
  }
  return all;
}

Json memory() {
  std::int64_t resident = 0, ignored = 0;
  std::ifstream own("/proc/self/statm");
  own >> ignored >> resident;
  const std::int64_t used = resident * 4096, free = free_host_memory().value_or(0);
  return {{"ram", {{"free", free}, {"used", used}, {"total", free + used}}},
          {"cuda", {{"error", "unavailable"}}}};
}

}  // namespace

void Routes::add_webui_lists() {
  const std::string root = "/sdapi/v1/";
  const auto list = [&](const char* name, auto make) {
    get(root + name, Access::key,
        [make](const HttpRequest&, HttpResponse& response) { send(response, make()); });
  };
  list("sd-models", [this] { return models_of(service_); });
  list("samplers", [this] { return samplers_of(service_); });
  list("schedulers", [] {
    return Json::array({{{"name", "automatic"},
                         {"label", "Automatic"},
                         {"aliases", nullptr},
                         {"default_rho", -1},
                         {"need_inner_model", false}}});
  });
  list("upscalers", [] {
    return Json::array({{{"name", "None"},
                         {"model_name", nullptr},
                         {"model_path", nullptr},
                         {"model_url", nullptr},
                         {"scale", 1}}});
  });
  for (const char* name :
       {"latent-upscale-modes", "sd-vae", "sd-modules", "loras", "hypernetworks", "face-restorers",
        "realesrgan-models", "prompt-styles", "script-info", "extensions"})
    list(name, [] { return Json::array(); });
  list("embeddings", [] { return Json{{"loaded", Json::object()}, {"skipped", Json::object()}}; });
  list("scripts", [] { return Json{{"txt2img", Json::array()}, {"img2img", Json::array()}}; });
  list("cmd-flags", [this] {
    return Json{{"api", true}, {"nowebui", false}, {"port", port}, {"cors_allow_origins", options.cors}};
  });
  list("memory", [] { return memory(); });
  list("options", [this] {
    const Service::Model& model = *service_.models().front();
    return Json{{"sd_model_checkpoint", model.name()},
                {"sd_checkpoint_hash", model.origin.manifest_sha256},
                {"sd_vae", "Automatic"},
                {"CLIP_stop_at_last_layers", 1},
                {"samples_format", "png"}};
  });
  for (const char* name : {"refresh-checkpoints", "refresh-loras", "refresh-vae", "refresh-embeddings"}) {
    post(root + name, Body::any, [](const HttpRequest&, HttpResponse& response) { send(response, nullptr); });
  }
  // One client cannot change settings for others: a request names its model in override_settings.
  post(root + "options", Body::json, [this](const HttpRequest& request, HttpResponse& response) {
    const Json body = parse_body(request.body);
    std::vector<std::string> warnings;
    if (body.is_object() && body.contains("sd_model_checkpoint") && body["sd_model_checkpoint"].is_string()) {
      const std::string name = body["sd_model_checkpoint"].get<std::string>();
      if (&service_.model(name, warnings) != service_.models().front().get()) {
        throw HttpError(400, "invalid_value",
                        "sd_model_checkpoint: choose it with override_settings of a request");
      }
    }
    add_warnings(response, warnings);
    send(response, nullptr);
  });
}

}  // namespace lamplighter::cli
