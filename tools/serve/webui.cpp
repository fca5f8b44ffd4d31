#include <utility>

#include "base/base64.h"
#include "pipeline/requests/metadata.h"
#include "tools/serve/routes.h"

// The API of the web UI, as far as text to image goes.
namespace lamplighter::cli {

void Routes::txt2img(const Ask& ask, const std::string& text, Answer& answer) {
  const Json body = parse_body(text);
  const PicturesWanted wanted = parse_txt2img(body, service_.options.limits);
  Service::Model& model = service_.model(wanted.model);
  const std::shared_ptr<Order> order = submit(wanted, model);
  if (!wait(ask, *order)) throw Refusal(499, "client_gone", "the client has gone");
  Json images = Json::array(), seeds = Json::array(), texts = Json::array();
  for (std::size_t i = 0; i < order->requests().size(); ++i) {
    const Request& request = order->requests()[i];
    const Result& result = order->result(i);
    images.push_back(base64(picture_bytes(model.origin, request, result)));
    seeds.push_back(result.seed);
    texts.push_back(picture_text(describe_picture(model.origin, request, result)).front().second);
  }
  const Result& first = order->result(0);
  const Json info{{"prompt", order->requests()[0].prompt},
                  {"seed", first.seed},
                  {"all_seeds", std::move(seeds)},
                  {"width", first.image.width},
                  {"height", first.image.height},
                  {"sampler_name", first.method.method},
                  {"steps", first.statistics.target_passes},
                  {"batch_size", wanted.count},
                  {"sd_model_name", model.name()},
                  {"infotexts", std::move(texts)}};
  send(answer, {{"images", std::move(images)}, {"parameters", body}, {"info", to_text(info)}});
}

void Routes::progress(Answer& answer) {
  Queue::State sum;
  double rest_s = 0;
  for (const auto& model : service_.models()) {
    const Queue::State state = model->queue.state();
    sum.waiting += state.waiting;
    sum.in_work += state.in_work;
    sum.tokens_done += state.tokens_done;
    sum.tokens_in_work += state.tokens_in_work;
    rest_s += state.picture_s * static_cast<double>(state.waiting + state.in_work);
  }
  const double share = sum.tokens_in_work > 0
                           ? static_cast<double>(sum.tokens_done) / static_cast<double>(sum.tokens_in_work)
                           : 0;
  send(answer, {{"progress", share},
                {"eta_relative", rest_s},
                {"state",
                 {{"skipped", false},
                  {"interrupted", false},
                  {"job", sum.in_work > 0 ? "txt2img" : ""},
                  {"job_count", sum.in_work + sum.waiting},
                  {"job_no", 0},
                  {"sampling_step", sum.tokens_done},
                  {"sampling_steps", sum.tokens_in_work}}},
                {"current_image", nullptr},
                {"textinfo", nullptr}});
}

void Routes::add_webui() {
  const std::string root = "/sdapi/v1/";
  post(root + "txt2img", webui_error,
       [this](const Ask& ask, const std::string& body, Answer& answer) { txt2img(ask, body, answer); });
  get(root + "progress", webui_error, false, [this](const Ask&, Answer& answer) { progress(answer); });
  get(root + "options", webui_error, false, [this](const Ask&, Answer& answer) {
    const Service::Model& model = *service_.models().front();
    send(answer, {{"sd_model_checkpoint", model.name()},
                  {"sd_checkpoint_hash", model.origin.manifest_sha256},
                  {"samples_format", "png"}});
  });
  // Nothing can be set for others: a request names its model in override_settings.
  post(root + "options", webui_error, [this](const Ask&, const std::string& text, Answer& answer) {
    const Json body = parse_body(text);
    if (body.contains("sd_model_checkpoint") &&
        body["sd_model_checkpoint"] != service_.models().front()->name())
      throw Refusal(400, "invalid_value",
                    "sd_model_checkpoint: choose it with override_settings of a request");
    send(answer, nullptr);
  });
  get(root + "sd-models", webui_error, false, [this](const Ask&, Answer& answer) {
    Json all = Json::array();
    for (const auto& model : service_.models()) {
      const std::string& sha256 = model->origin.manifest_sha256;
      all.push_back({{"title", model->name()},
                     {"model_name", model->name()},
                     {"hash", sha256.substr(0, 10)},
                     {"sha256", sha256},
                     {"filename", model->name()},
                     {"config", nullptr}});
    }
    send(answer, all);
  });
}

}  // namespace lamplighter::cli
