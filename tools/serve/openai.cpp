#include <ctime>
#include <memory>
#include <utility>
#include <vector>

#include "base/base64.h"
#include "propose/registry.h"
#include "serve/stream.h"
#include "tools/serve/client.h"
#include "tools/serve/routes.h"

// OpenAI's images API.
namespace lamplighter::cli {
namespace {

// A model as OpenAI's clients expect it, with what the page needs to know.
Json model_entry(const Service::Model& model) {
  const Manifest& manifest = model.engine.manifest();
  Json sizes = Json::array(), grids = Json::array(), names = Json::array();
  for (const Grid& grid : manifest.grids) {
    sizes.push_back(std::to_string(grid.width) + "x" + std::to_string(grid.height));
    grids.push_back({{"rows", grid.rows}, {"columns", grid.columns}});
  }
  for (const MethodEntry& method : methods()) {
    if (missing_for(method, manifest).empty()) names.emplace_back(method.name);
  }
  const PromptEntry& prompt = *manifest.prompt;
  return {{"id", model.name()},
          {"object", "model"},
          {"created", 0},
          {"owned_by", manifest.family},
          {"sizes", std::move(sizes)},
          {"grids", std::move(grids)},
          {"methods", std::move(names)},
          {"method", model.method.method},
          {"prompt", prompt.kind},
          {"example", prompt.vocabulary ? prompt.vocabulary->example : ""},
          {"negative_prompt", prompt.negative_text ? Json(prompt.negative_prompt) : Json(nullptr)}};
}

}  // namespace

Json Routes::content_of(const Ask& ask, const Service::Model& model, bool by_url, const Request& request,
                        const Result& result) {
  std::string bytes = picture_bytes(model.origin, request, result);
  if (!by_url) return {{"b64_json", base64(bytes)}};
  const std::string host = ask.has_header("Host") ? ask.get_header_value("Host") : options.authority(port);
  return {{"url", "http://" + host + "/v1/images/results/" + service_.store.add(std::move(bytes)) + ".png"},
          {"expires_at", std::time(nullptr) + service_.options.url_lifetime.count()}};
}

void Routes::generations(const Ask& ask, const std::string& body, Answer& answer) {
  const PicturesWanted wanted = parse_generations(body, service_.options.limits);
  Service::Model& model = service_.model(wanted.model);
  const std::shared_ptr<Order> order = submit(wanted, model);
  if (wanted.stream) return stream(ask, answer, wanted, model, order);
  if (!wait(ask, *order)) throw Refusal(499, "client_gone", "the client has gone");
  Json data = Json::array();
  std::vector<const Result*> results;
  for (std::size_t i = 0; i < order->requests().size(); ++i) {
    const Result& result = order->result(i);
    results.push_back(&result);
    data.push_back(
        picture_entry(content_of(ask, model, wanted.by_url, order->requests()[i], result), result));
  }
  const Image& first = results.front()->image;
  send(answer, {{"created", std::time(nullptr)},
                {"data", std::move(data)},
                {"output_format", "png"},
                {"size", std::to_string(first.width) + "x" + std::to_string(first.height)},
                {"model", model.name()},
                {"usage", usage_of(results)}});
}

void Routes::stream(const Ask& ask, Answer& answer, const PicturesWanted& wanted, Service::Model& model,
                    const std::shared_ptr<Order>& order) {
  const auto events = std::make_shared<EventStream>(
      model, order, wanted.partial_images,
      [this, &model, by_url = wanted.by_url, host = ask](const Request& request, const Result& result) {
        return content_of(host, model, by_url, request, result);
      });
  const Client client(ask.remote_addr, ask.remote_port, ask.local_port);
  answer.set_header("Cache-Control", "no-store");
  answer.set_chunked_content_provider(
      "text/event-stream",
      [events, client](std::size_t, httplib::DataSink& sink) {
        while (!events->ended()) {
          const std::string text = events->next(kLook);
          if (text.empty() && client.is_gone()) return false;
          if (text.empty()) continue;
          return sink.write(text.data(), text.size());
        }
        sink.done();
        return true;
      },
      [order](bool) { order->cancel(); });  // which says nothing to one that is complete
}

void Routes::add_openai() {
  post("/v1/images/generations", openai_error,
       [this](const Ask& ask, const std::string& body, Answer& answer) { generations(ask, body, answer); });
  get("/v1/models", openai_error, false, [this](const Ask&, Answer& answer) {
    Json data = Json::array();
    for (const auto& model : service_.models()) data.push_back(model_entry(*model));
    send(answer, {{"object", "list"}, {"data", std::move(data)}});
  });
  // Names cannot be guessed: they are the key.
  get("/v1/images/results/([0-9a-f]{32})\\.png", openai_error, true, [this](const Ask& ask, Answer& answer) {
    const PictureStore::Bytes bytes = service_.store.find(ask.matches[1]);
    if (!bytes) throw Refusal(404, "not_found", "there is no such picture, or none any more");
    answer.set_header("Cache-Control", "private, no-store");
    answer.set_content(*bytes, "image/png");
  });
}

}  // namespace lamplighter::cli
