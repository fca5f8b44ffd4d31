#include "tools/serve/routes.h"

#include <algorithm>
#include <cctype>
#include <exception>
#include <utility>

#include "base/stopwatch.h"
#include "batch/failure.h"
#include "lamplighter/error.h"
#include "lamplighter/version.h"
#include "serve/page/page_html.h"
#include "tools/serve/client.h"

namespace lamplighter::cli {
namespace {

constexpr const char* kJson = "application/json";

// What the thread that answers knows of its request until it is answered.
struct Answering {
  std::string path = "other";
  Stopwatch watch;
};
thread_local Answering answering;

// A browser asks before it sends JSON to another site, and sends other types unasked.
void require_json(const Ask& ask) {
  std::string type = ask.get_header_value("Content-Type");
  std::transform(type.begin(), type.end(), type.begin(), [](unsigned char c) { return std::tolower(c); });
  if (type.rfind(kJson, 0) != 0)
    throw Refusal(415, "unsupported_media_type", "Content-Type: expected application/json");
}

// The body, whatever it says of its length: packed and endless ones are larger than they look.
std::string read_body(const Ask& ask, Answer& answer, const httplib::ContentReader& read, std::size_t most) {
  // What has no length has no body; the library would wait for more until the time is up.
  if (!ask.has_header("Content-Length") && !ask.has_header("Transfer-Encoding")) {
    answer.set_header("Connection", "close");
    return "";
  }
  std::string body;
  bool fits = true;
  const auto take = [&](const char* data, std::size_t count) {
    fits = body.size() + count <= most;
    if (fits) body.append(data, count);
    return fits;
  };
  const bool whole =
      ask.is_multipart_form_data() ? read([](const auto& /*part*/) { return true; }, take) : read(take);
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

void send(Answer& answer, const Json& json, int status) {
  answer.status = status;
  answer.set_content(to_text(json) + "\n", kJson);
}

void send(Answer& answer, const Refusal& refusal, ErrorForm form) {
  if (refusal.retry_s() > 0) answer.set_header("Retry-After", std::to_string(refusal.retry_s()));
  if (refusal.status() == 401) answer.set_header("WWW-Authenticate", "Bearer");
  send(answer, form(refusal), refusal.status());
}

Routes::Routes(Service& service, const HttpOptions& given, Terminal& terminal)
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

void Routes::get(const std::string& path, ErrorForm form, bool open, const Handler& handler) {
  const std::string name = path.substr(0, path.find("/("));
  server.Get(path, [this, name, form, open, handler](const Ask& ask, Answer& answer) {
    guard(name, form, open, ask, answer, [&] { handler(ask, answer); });
  });
}

void Routes::post(const std::string& path, ErrorForm form, const BodyHandler& handler) {
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
void Routes::guard(const std::string& path, ErrorForm form, bool open, const Ask& ask, Answer& answer,
                   const std::function<void()>& work) {
  answering = {path, {}};
  try {
    if (!open) require_key(ask);
    work();
  } catch (const Error& error) {
    send(answer, to_refusal(error), form);
  } catch (const std::exception& error) {
    const std::lock_guard lock(log_);
    terminal_.complain(path + ": " + first_line(error));
    send(answer, Refusal(500, "internal_error", "something went wrong here"), form);
  }
}

void Routes::require_key(const Ask& ask) const {
  if (options.api_key.empty()) return;
  const std::string given = ask.get_header_value("Authorization"), scheme = "Bearer ";
  if (given.rfind(scheme, 0) != 0 || !is_same_secret(given.substr(scheme.size()), options.api_key)) {
    throw Refusal(401, "invalid_api_key", "got no valid key, expected the header Authorization: Bearer KEY");
  }
}

std::shared_ptr<Order> Routes::submit(const PicturesWanted& wanted, Service::Model& model) {
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
bool Routes::wait(const Ask& ask, Order& order) {
  const Client client(ask.remote_addr, ask.remote_port, ask.local_port);
  while (!order.wait(kLook)) {
    if (!client.is_gone()) continue;
    order.cancel();
    return false;
  }
  return true;
}

void Routes::add_rest() {
  // It asks for the key itself, and no other place for anything.
  get("/", openai_error, true, [](const Ask&, Answer& answer) {
    answer.set_header("Content-Security-Policy",
                      "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
                      "img-src data: blob:; connect-src 'self'; base-uri 'none'; frame-ancestors 'none'");
    answer.set_content(kServePage, "text/html; charset=utf-8");
  });
  get("/health", openai_error, true, [this](const Ask&, Answer& answer) {
    if (!service_.is_ready()) throw Refusal(503, "loading", "weights are being loaded", 1);
    if (service_.is_closed()) throw Refusal(503, "shutting_down", "the server is ending", 5);
    send(answer, {{"status", "ok"}, {"version", kVersion}});
  });
  get("/metrics", openai_error, false, [this](const Ask&, Answer& answer) {
    answer.set_content(service_.metrics_text(), "text/plain; version=0.0.4");
  });
}

}  // namespace lamplighter::cli
