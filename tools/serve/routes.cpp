#include "tools/serve/routes.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/base64.h"
#include "base/lines.h"
#include "batch/failure.h"
#include "lamplighter/error.h"
#include "pipeline/caption_notes.h"
#include "serve/http/inflate.h"

namespace lamplighter::cli {
namespace {

constexpr const char* kForm = "multipart/form-data";
constexpr std::size_t kMostUnpacked = std::size_t{32} << 20;  // bytes of bodies that came packed

// A browser asks the server before it sends JSON to another site; other types it sends without asking.
void require_type(const HttpRequest& request, const std::string& expected) {
  const std::string* type = request.header("content-type");
  if (type == nullptr || lower_case(*type).rfind(expected, 0) != 0)
    throw HttpError(415, "unsupported_media_type", "Content-Type: expected " + expected);
}

ErrorForm form_of(const std::string& path) {
  return path.rfind("/sdapi/", 0) == 0 ? webui_error : openai_error;
}

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

std::vector<std::string> own_hosts(const HttpOptions& options) {
  std::vector<std::string> hosts = options.hosts;
  hosts.push_back(options.host);
  return hosts;
}

}  // namespace

void send(HttpResponse& response, const Json& json, int status) {
  response.status = status;
  response.set_body(to_text(json) + "\n", kJson);
}

void send(HttpResponse& response, const HttpError& error, ErrorForm form) {
  if (error.retry_s() > 0) response.set_header("Retry-After", std::to_string(error.retry_s()));
  if (error.status() == 401) response.set_header("WWW-Authenticate", "Bearer");
  send(response, form(error), error.status());
}

std::string last_part(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

void add_warnings(HttpResponse& response, const std::vector<std::string>& warnings) {
  constexpr std::size_t most = 16;  // more would be too long for some clients
  for (std::size_t i = 0; i < std::min(most, warnings.size()); ++i)
    response.set_header("X-Lamplighter-Warning", header_text(warnings[i]));
}

std::vector<std::string> all_warnings(const std::vector<std::string>& warnings, const Manifest& manifest,
                                      const Job& job) {
  std::vector<std::string> all = warnings;
  for (std::size_t i = 0; i < job.requests().size(); ++i) {
    const std::string cut = job.has_result(i) ? job.result(i).cut : "";
    for (const std::string& note : caption_notes(manifest, job.requests()[i], cut)) {
      if (std::find(all.begin(), all.end(), note) == all.end()) all.push_back(note);
    }
  }
  return all;
}

bool Routes::Route::matches(const std::string& asked) const {
  if (path.back() != '*') return asked == path;
  const std::size_t front = path.size() - 1;
  return asked.size() > front && asked.compare(0, front, path, 0, front) == 0;
}

Routes::Routes(Service& service, const HttpOptions& given, Terminal& terminal)
    : options(given), service_(service), terminal_(terminal), origin_(own_hosts(given), given.cors) {
  add_openai();
  add_chat();
  add_webui();
  add_rest();
}

void Routes::get(const std::string& path, Access access, Handler handler) {
  routes_.push_back({"GET", path, access, Body::any, std::move(handler)});
}

void Routes::post(const std::string& path, Body body, Handler handler) {
  routes_.push_back({"POST", path, Access::key, body, std::move(handler)});
}

const Routes::Route* Routes::find(const HttpRequest& request) const {
  const std::string& method = request.method == "HEAD" ? "GET" : request.method;
  const auto found = std::find_if(routes_.begin(), routes_.end(), [&](const Route& route) {
    return route.method == method && route.matches(request.path);
  });
  return found == routes_.end() ? nullptr : &*found;
}

std::string Routes::methods_of(const std::string& path) const {
  std::string methods;
  for (const Route& route : routes_) {
    if (route.matches(path))
      methods += (methods.empty() ? "" : ", ") + (route.method == "GET" ? "GET, HEAD" : route.method);
  }
  return methods;
}

// The path that a request wanted whose client was given an address without its end (/v1), or with it twice,
// or with a slash behind it; empty: none.
std::string Routes::meant(const std::string& asked) const {
  const std::string end = "/" + std::string(trimmed(asked, "/"));
  std::string found;
  for (const Route& route : routes_) {
    const std::string& path = route.path;
    if (path != "/" && path.back() != '*' && (ends_with(path, end) || ends_with(end, path)) &&
        path.size() > found.size())
      found = path;
  }
  return found;
}

void Routes::refuse_path(const HttpRequest& request) const {
  const std::string methods = methods_of(request.path);
  if (methods.empty()) {
    const std::string path = meant(request.path);
    throw HttpError(404, "not_found",
                    "there is no such path" + (path.empty() ? "" : "; did you mean " + path + "?"));
  }
  throw HttpError(405, "method_not_allowed", "got another method, expected " + methods);
}

void Routes::fail(HttpResponse& response, const HttpError& error, const std::string& path) const {
  send(response, error, form_of(path));
  if (error.status() == 405) response.set_header("Allow", methods_of(path));
}

void Routes::check_head(const Route& route, const HttpRequest& head) const {
  if (route.access == Access::key) require_key(head);
  if (route.method != "POST") return;
  if (route.body == Body::json) require_type(head, kJson);
  if (route.body != Body::form) return;
  origin_.check(head);  // also beside a key, which a browser may send by itself
  require_type(head, kForm);
}

// A request without a body is refused by answer(), so that its connection can go on.
void Routes::admit(const HttpRequest& head) {
  if (!head.has_body()) return;
  if (options.api_key.empty()) origin_.check(head);
  const Route* route = find(head);
  if (route == nullptr) refuse_path(head);
  check_head(*route, head);
}

// A kilobyte may unpack to a megabyte: packed bodies count until they are answered; one is unpacked at a
// time. Returns what counts it.
std::shared_ptr<void> Routes::unpack_body(HttpRequest& request) {
  const std::string* given = request.has_body() ? request.header("content-encoding") : nullptr;
  const std::string coding = given == nullptr ? "identity" : lower_case(*given);
  if (coding == "identity") return nullptr;
  if (coding != "gzip" && coding != "deflate") {
    throw HttpError(415, "unsupported_media_type",
                    "Content-Encoding: expected gzip, deflate, identity or none");
  }
  const std::lock_guard lock(unpacking_);
  if (unpacked_ >= kMostUnpacked)
    throw HttpError(503, "busy", "too many large requests are being answered", 1);
  request.body = inflate_body(request.body, options.body_bytes);
  const std::size_t bytes = request.body.size();
  unpacked_ += bytes;
  return {nullptr, [this, bytes](std::nullptr_t) { unpacked_ -= bytes; }};
}

void Routes::answer(HttpRequest& request, HttpResponse& response) {
  try {
    if (options.api_key.empty()) origin_.check(request);
    const Route* route = find(request);
    if (request.method == "OPTIONS" && !options.cors.empty()) {
      response.status = 204;
    } else if (route == nullptr) {
      refuse_path(request);
    } else {
      check_head(*route, request);
      const std::shared_ptr<void> held = unpack_body(request);
      route->handler(request, response);
    }
  } catch (const Error& error) {
    fail(response, to_http_error(error), request.path);
  } catch (const std::exception& error) {
    terminal_.complain(label(request.path) + ": " + first_line(error));
    fail(response, HttpError(500, "internal_error", "internal error"), request.path);
  }
  add_cors(response);
}

// A body may be packed, and unpacking takes time.
bool Routes::is_quick(const HttpRequest& request) const {
  return request.path == kHealth && !request.has_body();
}

HttpResponse Routes::refuse(const HttpError& error, const std::string& path) {
  HttpResponse response;
  fail(response, error, path);
  add_cors(response);
  return response;
}

std::string Routes::label(const std::string& path) const {
  const auto found =
      std::find_if(routes_.begin(), routes_.end(), [&](const Route& route) { return route.matches(path); });
  if (found == routes_.end()) return "other";
  return found->path.back() == '*' ? found->path.substr(0, found->path.size() - 2) : found->path;
}

void Routes::answered(const std::string& method, const std::string& label, int status, double seconds) {
  service_.metrics.answered(label, status, seconds);
  terminal_.detail(method + " " + label + " " + std::to_string(status) + " " + format_fixed(seconds, 3) +
                   " s");
}

void Routes::add_cors(HttpResponse& response) const {
  if (options.cors.empty()) return;
  response.set_header("Access-Control-Allow-Origin", options.cors);
  response.set_header("Access-Control-Allow-Methods", "GET, POST, OPTIONS");
  response.set_header("Access-Control-Allow-Headers", "Authorization, Content-Type");
  response.set_header("Access-Control-Expose-Headers", "X-Lamplighter-Warning, Retry-After");
  response.set_header("Vary", "Origin");
}

// As OpenAI's clients send a key; or as the web UI's send a name and a password, of which either both with
// the colon between them, or the password is the key.
void Routes::require_key(const HttpRequest& request) const {
  if (options.api_key.empty()) return;
  const std::string* header = request.header("authorization");
  const std::string given = header == nullptr ? "" : *header, bearer = "bearer ", basic = "basic ";
  const std::string scheme = lower_case(given.substr(0, given.find(' ') + 1));
  std::string key = given.substr(scheme.size());
  bool is_valid = scheme == bearer && is_same_secret(key, options.api_key);
  if (scheme == basic) {
    key = decode_base64(key).value_or("");
    const bool is_whole = is_same_secret(key, options.api_key);
    const std::size_t colon = key.find(':');
    const std::string password = colon == std::string::npos ? "" : key.substr(colon + 1);
    is_valid = is_same_secret(password, options.api_key) || is_whole;
  }
  if (is_valid) return;
  throw HttpError(401, "invalid_api_key",
                  "got no valid key, expected the header Authorization: Bearer KEY, or Basic with the key as "
                  "password");
}

Routes::Submission Routes::submit(ImagesWanted wanted, bool follows) {
  if (options.log_prompts) {
    terminal_.log(std::to_string(wanted.count) + " x " +
                  to_text(Json(wanted.request.class_id ? "class " + std::to_string(*wanted.request.class_id)
                                                       : wanted.request.prompt)));
  }
  Submission submission;
  submission.model = &service_.model(wanted.model, submission.warnings);
  PlannedRequests plan = plan_requests(wanted, submission.model->engine.manifest(), submission.model->method,
                                       service_.options.rules);
  if (wanted.edit) begin_edit(*wanted.edit, submission.model->engine, service_.options.rules, plan);
  wanted.edit.reset();
  for (std::string& warning : plan.warnings) submission.warnings.push_back(std::move(warning));
  submission.job = submission.model->queue.submit(std::move(plan.requests), wanted.deadline_s, follows);
  submission.wanted = std::move(wanted);
  submission.wanted.unused = std::move(plan.unused);
  return submission;
}

// False when the client has gone.
bool Routes::wait(const HttpRequest& request, Job& job) {
  while (!job.wait(kPollClient)) {
    if (!request.is_client_gone()) continue;
    job.cancel();
    return false;
  }
  return true;
}

}  // namespace lamplighter::cli
