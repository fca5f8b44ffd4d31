#include "tools/serve/http.h"

#include "lamplighter/error.h"

#if defined(LAMPLIGHTER_WITH_HTTP)

#include <httplib.h>

#include <ctime>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "base/base64.h"
#include "base/stopwatch.h"
#include "lamplighter/version.h"
#include "pipeline/metadata.h"
#include "serve/answers.h"
#include "serve/stream.h"
#include "tools/serve/client.h"

namespace lamplighter::cli {
namespace {

using Ask = httplib::Request;
using Answer = httplib::Response;
using ErrorForm = Json (*)(const Refusal& refusal);

constexpr auto kLook = std::chrono::milliseconds(100);  // how often a client is looked after
constexpr const char* kJson = "application/json";
constexpr const char* kPng = "image/png";

// What the thread that answers knows of its request until it is answered.
struct Answering {
  std::string path = "other";
  Stopwatch watch;
};
thread_local Answering answering;

void send(Answer& answer, const Json& json, int status = 200) {
  answer.status = status;
  answer.set_content(to_text(json) + "\n", kJson);
}

void send(Answer& answer, const Refusal& refusal, ErrorForm form) {
  if (refusal.retry_s() > 0) answer.set_header("Retry-After", std::to_string(refusal.retry_s()));
  if (refusal.status() == 401) answer.set_header("WWW-Authenticate", "Bearer");
  send(answer, form(refusal), refusal.status());
}

// A browser asks before it sends JSON to another site, and sends other types unasked.
void require_json(const Ask& ask) {
  const std::string type = ask.get_header_value("Content-Type");
  if (type.rfind(kJson, 0) != 0)
    throw Refusal(415, "unsupported_media_type", "Content-Type: expected application/json");
}

// The body, whatever it says of its length: packed and endless ones are larger than they look.
std::string read_body(const Ask& ask, Answer& answer, const httplib::ContentReader& read, std::size_t most) {
  std::string body;
  bool fits = true;
  const auto take = [&](const char* data, std::size_t count) {
    fits = body.size() + count <= most;
    if (fits) body.append(data, count);
    return fits;
  };
  const bool whole = ask.is_multipart_form_data()
                         ? read([](const httplib::MultipartFormData&) { return true; }, take)
                         : read(take);
  if (whole) return body;
  answer.set_header("Connection", "close");  // what is left of it is no request
  fits = fits && answer.status != 413;
  throw Refusal(fits ? 400 : 413, fits ? "bad_request" : "body_too_large",
                fits ? "the body ends early" : "the body is too large");
}

Refusal plain_refusal(int status) {
  switch (status) {
    case 404:
      return {404, "not_found", "there is nothing here"};
    case 413:
      return {413, "body_too_large", "the body is too large"};
    case 414:
      return {414, "uri_too_long", "the address is too long"};
    default:
      return {status, "bad_request", "no request that this server understands"};
  }
}

}  // namespace

class Http::Routes {
 public:
  Routes(Service& service, const HttpOptions& options, Terminal& terminal);

  httplib::Server server;
  const HttpOptions options;

 private:
  using Handler = std::function<void(const Ask&, Answer&)>;
  using BodyHandler = std::function<void(const Ask&, const std::string& body, Answer&)>;

  void add_openai();
  void add_webui();
  void add_rest();
  void get(const std::string& path, ErrorForm form, bool open, const Handler& handler);
  void post(const std::string& path, ErrorForm form, const BodyHandler& handler);
  void guard(const std::string& path, ErrorForm form, bool open, const Ask& ask, Answer& answer,
             const std::function<void()>& work);
  void require_key(const Ask& ask) const;

  std::shared_ptr<Order> submit(const PicturesWanted& wanted, Service::Model& model);
  bool wait(const Ask& ask, Order& order);
  Json content_of(const Ask& ask, const Service::Model& model, bool by_url, const Request& request,
                  const Result& result);
  void generations(const Ask& ask, const std::string& body, Answer& answer);
  void stream(const Ask& ask, Answer& answer, const PicturesWanted& wanted, Service::Model& model,
              const std::shared_ptr<Order>& order);
  void txt2img(const Ask& ask, const std::string& body, Answer& answer);
  void progress(Answer& answer);

  Service& service_;
  Terminal& terminal_;
  std::mutex log_;  // for the terminal
};

Http::Routes::Routes(Service& service, const HttpOptions& given, Terminal& terminal)
    : options(given), service_(service), terminal_(terminal) {
  // A thread for every picture that is waited for, and some for those who ask other things.
  const std::size_t threads = 64 + service.models().size() * (service.options.queue + 16);
  server.new_task_queue = [threads] { return new httplib::ThreadPool(threads); };
  server.set_payload_max_length(options.body_bytes);
  server.set_keep_alive_max_count(100);
  server.set_tcp_nodelay(true);
  server.set_error_handler([](const Ask&, Answer& answer) {
    if (answer.body.empty()) send(answer, plain_refusal(answer.status), openai_error);
  });
  server.set_logger([this](const Ask& ask, const Answer& answer) {
    const Answering done = std::exchange(answering, {});
    const double seconds = done.watch.elapsed() / 1000;
    service_.metrics.answered(done.path, answer.status, seconds);
    const std::lock_guard lock(log_);
    terminal_.detail(ask.method + " " + done.path + " " + std::to_string(answer.status) + " " +
                     format_fixed(seconds, 3) + " s");
  });
  if (!options.cors.empty()) {
    server.set_post_routing_handler([this](const Ask&, Answer& answer) {
      answer.set_header("Access-Control-Allow-Origin", options.cors);
      answer.set_header("Access-Control-Allow-Headers", "Authorization, Content-Type");
    });
    server.Options(".*", [](const Ask&, Answer& answer) { answer.status = 204; });
  }
  add_openai();
  add_webui();
  add_rest();
}

void Http::Routes::get(const std::string& path, ErrorForm form, bool open, const Handler& handler) {
  const std::string name = path.substr(0, path.find("/("));
  server.Get(path, [this, name, form, open, handler](const Ask& ask, Answer& answer) {
    guard(name, form, open, ask, answer, [&] { handler(ask, answer); });
  });
}

void Http::Routes::post(const std::string& path, ErrorForm form, const BodyHandler& handler) {
  server.Post(path, [=](const Ask& ask, Answer& answer, const httplib::ContentReader& read) {
    guard(path, form, true, ask, answer, [&] {
      const std::string body = read_body(ask, answer, read, options.body_bytes);
      require_key(ask);
      require_json(ask);
      handler(ask, body, answer);
    });
  });
}

// `open`: for all who ask, key or not.
void Http::Routes::guard(const std::string& path, ErrorForm form, bool open, const Ask& ask, Answer& answer,
                         const std::function<void()>& work) {
  answering = {path, {}};
  try {
    if (!open) require_key(ask);
    work();
  } catch (const Error& error) {
    send(answer, to_refusal(error), form);
  } catch (const std::exception& error) {
    const std::lock_guard lock(log_);
    terminal_.complain(path + ": " + error.what());
    send(answer, Refusal(500, "internal_error", "something went wrong here"), form);
  }
}

void Http::Routes::require_key(const Ask& ask) const {
  if (options.api_key.empty()) return;
  const std::string given = ask.get_header_value("Authorization"), scheme = "Bearer ";
  if (given.rfind(scheme, 0) != 0 || !is_same_secret(given.substr(scheme.size()), options.api_key)) {
    throw Refusal(401, "invalid_api_key", "got no valid key, expected the header Authorization: Bearer KEY");
  }
}

std::shared_ptr<Order> Http::Routes::submit(const PicturesWanted& wanted, Service::Model& model) {
  if (options.log_prompts) {
    const std::lock_guard lock(log_);
    terminal_.say(std::to_string(wanted.count) + " x " +
                  to_text(Json(wanted.request.class_id ? "class " + std::to_string(*wanted.request.class_id)
                                                       : wanted.request.prompt)));
  }
  return model.queue.submit(
      requests_for(wanted, model.engine.manifest(), model.method, service_.options.limits), wanted.deadline_s,
      wanted.stream);
}

// False when the client has gone.
bool Http::Routes::wait(const Ask& ask, Order& order) {
  const Client client(ask.remote_addr, ask.remote_port, ask.local_port);
  while (!order.wait(kLook)) {
    if (!client.is_gone()) continue;
    order.cancel();
    return false;
  }
  return true;
}

Json Http::Routes::content_of(const Ask& ask, const Service::Model& model, bool by_url,
                              const Request& request, const Result& result) {
  std::string bytes = picture_bytes(model.origin, request, result);
  if (!by_url) return {{"b64_json", base64(bytes)}};
  const std::string host = ask.has_header("Host") ? ask.get_header_value("Host")
                                                  : options.host + ":" + std::to_string(options.port);
  return {{"url", "http://" + host + "/v1/images/results/" + service_.store.add(std::move(bytes)) + ".png"},
          {"expires_at", std::time(nullptr) + service_.options.url_lifetime.count()}};
}

void Http::Routes::generations(const Ask& ask, const std::string& body, Answer& answer) {
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

void Http::Routes::stream(const Ask& ask, Answer& answer, const PicturesWanted& wanted, Service::Model& model,
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

void Http::Routes::txt2img(const Ask& ask, const std::string& text, Answer& answer) {
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

void Http::Routes::progress(Answer& answer) {
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

void Http::Routes::add_openai() {
  post("/v1/images/generations", openai_error,
       [this](const Ask& ask, const std::string& body, Answer& answer) { generations(ask, body, answer); });
  get("/v1/models", openai_error, false, [this](const Ask&, Answer& answer) {
    Json data = Json::array();
    for (const auto& model : service_.models()) {
      Json sizes = Json::array();
      for (const Grid& grid : model->engine.manifest().grids)
        sizes.push_back(std::to_string(grid.width) + "x" + std::to_string(grid.height));
      data.push_back({{"id", model->name()},
                      {"object", "model"},
                      {"created", 0},
                      {"owned_by", model->engine.manifest().family},
                      {"sizes", std::move(sizes)}});
    }
    send(answer, {{"object", "list"}, {"data", std::move(data)}});
  });
  // Names cannot be guessed: they are the key.
  get("/v1/images/results/([0-9a-f]{32})\\.png", openai_error, true, [this](const Ask& ask, Answer& answer) {
    const PictureStore::Bytes bytes = service_.store.find(ask.matches[1]);
    if (!bytes) throw Refusal(404, "not_found", "there is no such picture, or none any more");
    answer.set_header("Cache-Control", "private, no-store");
    answer.set_content(*bytes, kPng);
  });
}

void Http::Routes::add_webui() {
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

void Http::Routes::add_rest() {
  get("/health", openai_error, true, [this](const Ask&, Answer& answer) {
    if (!service_.is_ready()) throw Refusal(503, "loading", "weights are being loaded", 1);
    if (service_.is_closed()) throw Refusal(503, "shutting_down", "the server is ending", 5);
    send(answer, {{"status", "ok"}, {"version", kVersion}});
  });
  get("/metrics", openai_error, false, [this](const Ask&, Answer& answer) {
    answer.set_content(service_.metrics_text(), "text/plain; version=0.0.4");
  });
}

bool has_http() {
  return true;
}

Http::Http(Service& service, const HttpOptions& options, Terminal& terminal)
    : routes_(std::make_unique<Routes>(service, options, terminal)) {}
Http::~Http() = default;

int Http::bind() {
  const HttpOptions& options = routes_->options;
  const bool free = options.port == 0;
  const int port = free ? routes_->server.bind_to_any_port(options.host)
                        : (routes_->server.bind_to_port(options.host, options.port) ? options.port : -1);
  if (port < 0) {
    throw Error(ExitCode::usage, "--port: cannot listen on " + options.host + ":" +
                                     std::to_string(options.port) + ": the address is taken or not ours");
  }
  return port;
}

void Http::run() {
  routes_->server.listen_after_bind();
}

void Http::stop() {
  routes_->server.stop();
}

}  // namespace lamplighter::cli

#else

namespace lamplighter::cli {

class Http::Routes {};

bool has_http() {
  return false;
}
Http::Http(Service& /*service*/, const HttpOptions& /*options*/, Terminal& /*terminal*/) {}
Http::~Http() = default;
int Http::bind() {
  return -1;
}
void Http::run() {}
void Http::stop() {}

}  // namespace lamplighter::cli

#endif
