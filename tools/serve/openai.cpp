#include <algorithm>
#include <ctime>
#include <memory>
#include <utility>
#include <vector>

#include "base/base64.h"
#include "base/format.h"
#include "draft/options/options.h"
#include "draft/registry.h"
#include "lamplighter/method.h"
#include "serve/stream.h"
#include "tools/serve/routes.h"

// OpenAI's images API.
namespace lamplighter::cli {
namespace {

// Captions to try: the bundle's example, and the same with other subjects of its vocabulary.
Json examples_of(const PromptEntry& prompt) {
  constexpr std::size_t most = 4;
  Json examples = Json::array();
  if (!prompt.vocabulary) return examples;
  const std::string& first = prompt.vocabulary->example;
  examples.push_back(first);
  std::string subject;  // the longest phrase of the example
  std::vector<std::string> others;
  for (const VocabularyEntry::Kind& kind : prompt.vocabulary->kinds) {
    if (kind.name != prompt.vocabulary->subject) continue;
    for (const VocabularyEntry::Value& value : kind.values) {
      bool is_own = false;
      for (const std::string& phrase : value.phrases) {
        const bool is_there = first.find(phrase) != std::string::npos;
        is_own = is_own || is_there;
        if (is_there && phrase.size() > subject.size()) subject = phrase;
      }
      if (!is_own) others.push_back(value.phrases.front());
    }
  }
  for (const std::string& other : others) {
    if (subject.empty() || examples.size() == most) break;
    std::string text = first;
    examples.push_back(text.replace(first.find(subject), subject.size(), other));
  }
  return examples;
}

// The tree and the factors that a method has in this bundle, by the names of their options.
Json settings_of(const Service::Model& model, const MethodEntry& method) {
  MethodOptions options;
  options.method = method.name;
  Json settings = Json::object();
  try {
    options = resolve_method(options, model.engine.manifest(), model.origin.device);
  } catch (const Error&) {
    return settings;  // it lacks a table, for example
  }
  Json values = Json::object();
  write_options(options, values);
  for (const char* key : {"tree", "lambda"}) {
    if (values.contains(key)) settings[key] = values[key];
  }
  if (model.origin.trees.count(options.tree) != 0) settings["tree"] = "bundle";
  return settings;
}

// A model in OpenAI's form, with more fields for the page.
Json model_entry(const Service::Model& model, const RequestLimits& limits) {
  const Manifest& manifest = model.engine.manifest();
  Json sizes = Json::array(), grids = Json::array(), names = Json::array(), meanings = Json::object();
  Json settings = Json::object();
  for (const Grid& grid : manifest.grids) {
    sizes.push_back(sides(grid.width, grid.height));
    grids.push_back({{"rows", grid.rows}, {"columns", grid.columns}});
  }
  for (const MethodEntry& method : methods()) {
    if (!missing_for(method, manifest).empty()) continue;
    names.emplace_back(method.name);
    meanings[method.name] = method.meaning;
    settings[method.name] = settings_of(model, method);
  }
  const PromptEntry& prompt = *manifest.prompt;
  return {{"id", model.name()},
          {"object", "model"},
          {"created", 0},
          {"owned_by", manifest.family},
          {"sizes", std::move(sizes)},
          {"grids", std::move(grids)},
          {"methods", std::move(names)},
          {"meanings", std::move(meanings)},
          {"settings", std::move(settings)},
          {"trees", {"chain-4", "chain-8", "chain-15", "fan-4-2-3", "lantern-26", "lantern-58", "dynamic"}},
          {"method", model.method.method},
          {"prompt", prompt.kind},
          {"example", prompt.vocabulary ? prompt.vocabulary->example : ""},
          {"examples", examples_of(prompt)},
          {"most_images", limits.images},
          {"image_encoder", manifest.has("image_encoder")},
          {"negative_prompt", prompt.negative_text ? Json(prompt.negative_prompt) : Json(nullptr)}};
}

}  // namespace

std::string Routes::own_address(const HttpRequest& asked) const {
  const std::string* given = asked.header("host");
  return "http://" + (given != nullptr && origin_.knows(*given) ? *given : options.authority(port));
}

Json Routes::content_of(const HttpRequest& asked, const Submission& submission, const Request& request,
                        const Result& result) {
  const ImageFormat& format = submission.wanted.format;
  std::string bytes = image_bytes(submission.model->origin, request, result, format);
  if (!submission.wanted.by_url) return {{"b64_json", base64(bytes)}};
  const std::string name = service_.store.add(std::move(bytes)) + "." + format.name;
  return {{"url", own_address(asked) + "/v1/images/results/" + name},
          {"expires_at", std::time(nullptr) + service_.options.url_lifetime.count()}};
}

void Routes::images(ImagesWanted parsed, const HttpRequest& request, HttpResponse& response) {
  const bool follows = parsed.stream;
  const Submission submission = submit(std::move(parsed), follows);
  if (follows) return stream(request, response, submission);
  const Job& job = *submission.job;
  if (!wait(request, *submission.job)) throw HttpError(499, "client_gone", "the client disconnected");
  Json data = Json::array();
  std::vector<const Result*> results;
  const Manifest& manifest = submission.model->engine.manifest();
  for (std::size_t i = 0; i < job.requests().size(); ++i) {
    const Request& asked = job.requests()[i];
    const Result& result = job.result(i);
    results.push_back(&result);
    data.push_back(image_entry(content_of(request, submission, asked, result), asked, result, {}));
  }
  const std::vector<std::string> warnings = all_warnings(submission.warnings, manifest, job);
  const Image& first = results.front()->image;
  Json answer{{"created", std::time(nullptr)},
              {"data", std::move(data)},
              {"output_format", submission.wanted.format.name},
              {"size", sides(first.width, first.height)},
              {"model", submission.model->name()},
              {"usage", usage_of(results)}};
  if (!warnings.empty()) answer["warnings"] = warnings;
  if (!submission.wanted.unused.empty()) answer["unused"] = submission.wanted.unused;
  add_warnings(response, warnings);
  send(response, answer);
}

void Routes::stream(const HttpRequest& asked, HttpResponse& response, const Submission& submission) {
  const auto events =
      std::make_shared<EventStream>(*submission.model, submission.job, submission.wanted, submission.warnings,
                                    [this, submission, &asked](const Request& request, const Result& result) {
                                      return content_of(asked, submission, request, result);
                                    });
  add_warnings(response,
               all_warnings(submission.warnings, submission.model->engine.manifest(), *submission.job));
  response.set_header("Cache-Control", "no-store");
  response.type = "text/event-stream";
  response.stream = [events, job = submission.job, &asked](const HttpResponse::Send& send) {
    while (!events->ended() && !asked.is_client_gone()) {
      if (!send(events->next(kPollClient))) break;
    }
    job->cancel();  // a job that is complete ignores it
  };
}

// A model by the name that a client gives; strict.
Service::Model& Routes::named_model(const std::string& name) {
  if (Service::Model* model = service_.find(name)) return *model;
  throw HttpError(404, "model_not_found", "model: this server has no such model");
}

void Routes::add_openai() {
  post("/v1/images/generations", Body::json, [this](HttpRequest& request, HttpResponse& response) {
    const std::string body = std::exchange(request.body, {});
    images(parse_generations(body, service_.options.rules), request, response);
  });
  post("/v1/images/edits", Body::form,
       [this](HttpRequest& request, HttpResponse& response) { edits(request, response); });
  post("/v1/images/variations", Body::any, [](const HttpRequest&, HttpResponse&) {
    throw HttpError(
        501, "not_implemented",
        "this server generates images from captions; /v1/images/edits generates a lower part of an "
        "image anew, or a rectangle");
  });
  get("/v1/models", Access::key, [this](const HttpRequest&, HttpResponse& response) {
    Json data = Json::array();
    for (const auto& model : service_.models())
      data.push_back(model_entry(*model, service_.options.rules.limits));
    for (const auto& [alias, name] : service_.options.aliases) {
      data.push_back(model_entry(named_model(name), service_.options.rules.limits));
      data.back()["id"] = alias;
      data.back()["alias_of"] = name;
    }
    send(response, {{"object", "list"}, {"data", std::move(data)}});
  });
  get("/v1/models/*", Access::key, [this](const HttpRequest& request, HttpResponse& response) {
    const std::string front = "/v1/models/";
    send(response,
         model_entry(named_model(request.path.substr(front.size())), service_.options.rules.limits));
  });
  // Names cannot be guessed: no other key is needed.
  get("/v1/images/results/*", Access::open, [this](const HttpRequest& request, HttpResponse& response) {
    const std::string file = last_part(request.path);
    const std::size_t dot = std::min(file.find('.'), file.size());
    ImageFormat format;
    if (dot < file.size()) format.name = file.substr(dot + 1);
    response.body = service_.store.find(file.substr(0, dot));
    const bool is_known = format.name == "png" || format.name == "jpeg" || format.name == "webp";
    if (!response.body || !is_known)
      throw HttpError(404, "not_found", "there is no such image, or its time is over");
    response.set_header("Cache-Control", "private, no-store");
    response.type = format.type();
  });
}

}  // namespace lamplighter::cli
