#include <algorithm>
#include <utility>

#include "base/base64.h"
#include "draft/auto.h"
#include "draft/options/options.h"
#include "image/png_chunks.h"
#include "pipeline/metadata/metadata.h"
#include "pipeline/output/partial_image.h"
#include "pipeline/resolved_request.h"
#include "serve/fields.h"
#include "tools/serve/routes.h"

// The web UI's API for text to image.
namespace lamplighter::cli {
namespace {

const std::string kRoot = "/sdapi/v1/";

// The rows of tokens that are there. No image where none is complete.
std::optional<Image> decode_part(Service::Model& model, const Request& request, const Job::Part& part) {
  if (part.grid == nullptr || static_cast<int>(part.codes.size()) < part.grid->columns) return std::nullopt;
  return lamplighter::decode_part(part.codes, *part.grid, request,
                                  [&](const Codes& codes) { return model.engine.decode(codes); });
}

// What is there of an image that was interrupted, with the settings of the whole one.
std::optional<Result> part_result(Service::Model& model, const Request& request, const Job::Part& part) {
  std::optional<Image> image = decode_part(model, request, part);
  if (!image) return std::nullopt;
  const Manifest& manifest = model.engine.manifest();
  Result result;
  result.image = std::move(*image);
  result.sampling = resolve_request(manifest, request).sampling;
  result.method = *request.method;
  if (!is_auto(result.method)) result.method = resolve_method(result.method, manifest, model.origin.device);
  result.seed = request.seed;
  result.statistics.tokens = part.tokens;
  result.statistics.target_passes = part.passes;
  return result;
}

// How much of an image is there, 0 to 1.
double share_of(const Job& job, std::size_t image) {
  if (job.has_result(image)) return 1;
  const Job::Part part = job.part(image);
  if (part.grid == nullptr) return 0;
  return static_cast<double>(part.codes.size()) / static_cast<double>(part.grid->rows * part.grid->columns);
}

}  // namespace

void Routes::webui_images(ImagesWanted wanted, const Json& parameters, const HttpRequest& asked,
                          HttpResponse& response) {
  const Submission submission = submit(std::move(wanted), true);
  Job& job = *submission.job;
  {
    const std::lock_guard lock(work_mutex_);
    work_.erase(std::remove_if(work_.begin(), work_.end(), [](const auto& one) { return one.job.expired(); }),
                work_.end());
    work_.push_back({asked.client, submission.job, submission.model});
  }
  if (!wait(asked, job)) throw HttpError(499, "client_gone", "the client disconnected");
  Json images = Json::array(), seeds = Json::array(), texts = Json::array(), files = Json::array();
  std::optional<Result> first;
  for (std::size_t i = 0; i < job.requests().size(); ++i) {
    const Request& request = job.requests()[i];
    std::optional<Result> part;
    if (!job.has_result(i)) part = part_result(*submission.model, request, job.part(i));  // interrupted
    if (!part && !job.has_result(i)) continue;
    const Result& result = part ? *part : job.result(i);
    files.push_back(base64(image_bytes(submission.model->origin, request, result)));
    seeds.push_back(result.seed);
    texts.push_back(image_text(describe_image(submission.model->origin, request, result)).front().second);
    if (!first) first = result;
  }
  if (submission.wanted.sends_images) images = std::move(files);
  const std::vector<std::string> warnings =
      all_warnings(submission.warnings, submission.model->engine.manifest(), job);
  const Request& request = job.requests()[0];
  const Manifest& manifest = submission.model->engine.manifest();
  const Grid& grid = find_grid(manifest, request.width, request.height);
  Json kept = Json::object();
  if (first) describe_kept(request, first->statistics, kept);
  const Json info{{"prompt", request.prompt},
                  {"negative_prompt", request.negative_prompt.value_or("")},
                  {"seed", request.seed},
                  {"all_seeds", std::move(seeds)},
                  {"width", grid.width},
                  {"height", grid.height},
                  {"sampler_name", first ? first->method.method : request.method->method},
                  {"cfg_scale", shortest(resolve_request(manifest, request).sampling.cfg_scale)},
                  {"steps", first ? first->statistics.target_passes : 0},
                  {"batch_size", submission.wanted.count},
                  {"sd_model_name", submission.model->name()},
                  {"sd_model_hash", submission.model->origin.manifest_sha256.substr(0, 10)},
                  {"extra_generation_params", std::move(kept)},
                  {"interrupted", job.is_interrupted()},
                  {"unused", submission.wanted.unused},
                  {"warnings", warnings},
                  {"infotexts", std::move(texts)}};
  add_warnings(response, warnings);
  send(response, {{"images", std::move(images)}, {"parameters", parameters}, {"info", to_text(info)}});
}

bool Routes::has_webui_work() {
  const std::lock_guard lock(work_mutex_);
  return std::any_of(work_.begin(), work_.end(), [](const WebuiWork& one) { return !one.job.expired(); });
}

std::vector<std::shared_ptr<Job>> Routes::jobs_of(const std::string& client) {
  const std::lock_guard lock(work_mutex_);
  std::vector<std::shared_ptr<Job>> jobs;
  for (const WebuiWork& one : work_) {
    std::shared_ptr<Job> job = one.job.lock();
    if (job && one.client == client) jobs.push_back(std::move(job));
  }
  return jobs;
}

// Ends the images that the same client asked for: one client cannot stop the images of others.
void Routes::interrupt(const HttpRequest& asked) {
  for (const std::shared_ptr<Job>& job : jobs_of(asked.client)) job->interrupt();
}

// The newest rows of an image in work, as base64; "" where there is none. One caller decodes at a
// time.
std::string Routes::current_image() {
  std::vector<std::pair<std::shared_ptr<Job>, Service::Model*>> jobs;
  {
    const std::lock_guard lock(work_mutex_);
    for (const WebuiWork& one : work_) {
      if (const std::shared_ptr<Job> job = one.job.lock()) jobs.emplace_back(job, one.model);
    }
  }
  const std::lock_guard lock(decoding_);
  for (const auto& [job, model] : jobs) {
    for (std::size_t i = 0; i < job->requests().size(); ++i) {
      const Job::Part part = job->part(i);
      if (job->has_result(i) || part.grid == nullptr) continue;
      const int rows = static_cast<int>(part.codes.size()) / part.grid->columns;
      if (rows == 0) continue;
      if (shown_.job.lock() != job || shown_.image != i || shown_.rows != rows)
        shown_ = {job, i, rows, base64(encode_png(*decode_part(*model, job->requests()[i], part)))};
      return shown_.base64;
    }
  }
  return "";
}

void Routes::progress(const HttpRequest& asked, HttpResponse& response) {
  Queue::State sum;
  double images = 0, done = 0, rest_s = 0;
  for (const auto& model : service_.models()) {
    const Queue::State state = model->queue.state();
    sum.waiting += state.waiting;
    sum.in_work += state.in_work;
    sum.tokens_done += state.tokens_done;
    sum.tokens_in_work += state.tokens_in_work;
    sum.complete += state.complete;
    const double begun = state.tokens_in_work > 0
                             ? static_cast<double>(state.in_work) * static_cast<double>(state.tokens_done) /
                                   static_cast<double>(state.tokens_in_work)
                             : 0;
    const auto rest = static_cast<double>(state.waiting + state.in_work);
    images += static_cast<double>(state.complete) + rest;
    done += static_cast<double>(state.complete) + begun;
    rest_s += state.image_s * (rest - begun);
  }
  const bool answers = has_webui_work();  // images that are complete become files
  std::size_t count = sum.complete + sum.in_work + sum.waiting, complete = sum.complete;
  if (const auto own = jobs_of(asked.client); !own.empty()) {  // images of others come and go
    images = done = 0;
    count = complete = 0;
    for (const std::shared_ptr<Job>& job : own) {
      count += job->requests().size();
      complete += job->results();
      for (std::size_t i = 0; i < job->requests().size(); ++i) done += share_of(*job, i);
    }
    images = static_cast<double>(count);
  }
  const double share = images > 0 ? done / images : answers ? 1 : 0;
  const std::string skips = lower_case(asked.parameter("skip_current_image").value_or("false"));
  const std::string image = skips == "true" || skips == "1" ? "" : current_image();
  send(response, {{"progress", share},
                  {"eta_relative", rest_s},
                  {"state",
                   {{"skipped", false},
                    {"interrupted", false},
                    {"stopping_generation", false},
                    {"job", images > 0 || answers ? "txt2img" : ""},
                    {"job_count", count},
                    {"job_timestamp", "0"},
                    {"job_no", complete},
                    {"sampling_step", sum.tokens_done},
                    {"sampling_steps", sum.tokens_in_work}}},
                  {"current_image", image.empty() ? Json(nullptr) : Json(image)},
                  {"textinfo", nullptr}});
}

// The settings in a PNG file, which comes as base64 or as a data URL. Its texts unpack to many times their
// size: they count as a body does, and one caller unpacks at a time.
void Routes::png_info(const HttpRequest& asked, HttpResponse& response) {
  const std::lock_guard lock(decoding_);
  const Json body = parse_body(asked.body);
  const std::string bytes = with_http_errors([&] {
    return read_base64(body.is_object() ? body.value("image", Json()) : Json(), "image", "a PNG file");
  });
  if (bytes.rfind(kPngSignature, 0) != 0)
    throw HttpError(400, "invalid_value", "image: expected a PNG file in base64");
  std::string info;
  Json items = Json::object();
  for (const auto& [key, value] : parse_png_text(bytes, "image", options.body_bytes)) {
    items[key] = value;
    if (key == "parameters") info = value;
  }
  send(response, {{"info", info}, {"items", items}, {"parameters", items}});
}

void Routes::add_webui() {
  post(kRoot + "txt2img", Body::json, [this](HttpRequest& request, HttpResponse& response) {
    const Json body = parse_body(std::exchange(request.body, {}));
    webui_images(parse_txt2img(body, service_.options.rules), body, request, response);
  });
  post(kRoot + "img2img", Body::json,
       [this](HttpRequest& request, HttpResponse& response) { img2img(request, response); });
  get(kRoot + "progress", Access::key,
      [this](const HttpRequest& request, HttpResponse& response) { progress(request, response); });
  for (const char* name : {"interrupt", "skip"}) {
    post(kRoot + name, Body::any, [this](const HttpRequest& request, HttpResponse& response) {
      interrupt(request);
      send(response, Json::object());
    });
  }
  post(kRoot + "png-info", Body::json,
       [this](const HttpRequest& request, HttpResponse& response) { png_info(request, response); });
  const char* const words = "this server neither enlarges images nor captions them";
  for (const char* name : {"interrogate", "extra-single-image", "extra-batch-images"}) {
    post(kRoot + name, Body::any,
         [words](const HttpRequest&, HttpResponse&) { throw HttpError(501, "not_implemented", words); });
  }
  add_webui_lists();
}

}  // namespace lamplighter::cli
