#include <algorithm>
#include <ctime>
#include <memory>
#include <utility>

#include "serve/parse_chat.h"
#include "serve/text_job.h"
#include "tools/serve/routes.h"

// OpenAI's chat API, for one question about one image.
namespace lamplighter::cli {
namespace {

// What all answers to a request begin with.
Json begin_answer(const Service::Model& model, const TextJob& job, const char* object) {
  return {{"id", "chatcmpl-" + std::to_string(job.request.seed)},
          {"object", object},
          {"created", std::time(nullptr)},
          {"model", model.name()}};
}

Json choice(const char* key, Json message, const Json& finish_reason) {
  return Json::array({{{"index", 0}, {key, std::move(message)}, {"finish_reason", finish_reason}}});
}

const char* finish_reason(const Description& result) {
  return result.is_cut ? "length" : "stop";
}

Json usage_of_text(const Description& result) {
  const auto tokens = static_cast<std::int64_t>(result.ids.size());
  return {{"prompt_tokens", result.prompt_tokens},
          {"completion_tokens", tokens},
          {"total_tokens", result.prompt_tokens + tokens},
          {"target_passes", result.statistics.target_passes}};
}

std::string data_line(const Json& data) {
  return "data: " + to_text(data) + "\n\n";
}

// Server-sent events as OpenAI's API streams chats.
class ChatStream {
 public:
  ChatStream(const Service::Model& model, std::shared_ptr<TextJob> job, std::string begun, bool with_usage)
      : model_(model), job_(std::move(job)), begun_(std::move(begun)), with_usage_(with_usage) {}

  void send_to(const HttpRequest& asked, const HttpResponse::Send& send) {
    bool goes_on = send(chunk({{"role", "assistant"}, {"content", begun_}}));
    const Description* result = job_->result();
    try {
      for (; goes_on && result == nullptr && !asked.is_client_gone(); result = job_->result()) {
        const std::string more = job_->more(kPollClient);
        if (!more.empty()) goes_on = send(chunk({{"content", more}}));
      }
      if (goes_on && result != nullptr) send(end(*result));
    } catch (const HttpError& error) {
      send(data_line(openai_error(error)));
    }
    job_->cancel();  // a job that is complete ignores it
  }

 private:
  std::string chunk(const Json& delta, const Json& finish = nullptr) const {
    Json event = begin_answer(model_, *job_, "chat.completion.chunk");
    event["choices"] = choice("delta", delta, finish);
    return data_line(event);
  }
  std::string end(const Description& result) const {
    std::string events = chunk(Json::object(), finish_reason(result));
    if (with_usage_) {
      Json usage = begin_answer(model_, *job_, "chat.completion.chunk");
      usage["choices"] = Json::array();
      usage["usage"] = usage_of_text(result);
      events += data_line(usage);
    }
    return events + "data: [DONE]\n\n";
  }

  const Service::Model& model_;
  const std::shared_ptr<TextJob> job_;
  const std::string begun_;
  const bool with_usage_;
};

}  // namespace

// Throws HttpError (501) where no model here describes images, whatever the request asks.
void Routes::require_speaker() const {
  const auto& models = service_.models();
  const bool is_there = std::any_of(models.begin(), models.end(), [](const auto& model) {
    return model->engine.manifest().text.has_value();
  });
  if (!is_there) require_texts(models.front()->engine.manifest());
}

// A failure before the first token is an answer of its own, also to a request for a stream.
void Routes::chat(HttpRequest& request, HttpResponse& response) {
  require_speaker();
  ChatWanted wanted = parse_chat(std::exchange(request.body, {}), service_.options.rules);
  if (options.log_prompts) terminal_.log("1 image: " + to_text(Json(wanted.request.prompt)));
  std::vector<std::string> warnings;
  Service::Model* model = &service_.model(wanted.model, warnings);
  read_chat_image(model->engine.manifest(), service_.options.rules, wanted, warnings);
  if (!wanted.unused.empty()) warnings.push_back("not used: " + list_of_unused(wanted.unused));
  add_warnings(response, warnings);
  const auto job = std::make_shared<TextJob>(std::move(wanted.request), wanted.method, wanted.deadline_s);
  model->queue.submit(job);
  std::string text;
  while (job->result() == nullptr && (text.empty() || !wanted.stream)) {
    text += job->more(kPollClient);
    if (!request.is_client_gone()) continue;
    job->cancel();
    throw HttpError(499, "client_gone", "the client disconnected");
  }
  if (wanted.stream) {
    const auto stream = std::make_shared<ChatStream>(*model, job, std::move(text), wanted.with_usage);
    response.set_header("Cache-Control", "no-store");
    response.type = "text/event-stream";
    response.stream = [stream, &request](const HttpResponse::Send& to) { stream->send_to(request, to); };
    return;
  }
  const Description& result = *job->result();
  Json answer = begin_answer(*model, *job, "chat.completion");
  answer["choices"] =
      choice("message", {{"role", "assistant"}, {"content", result.text}}, finish_reason(result));
  answer["usage"] = usage_of_text(result);
  answer["seed"] = job->request.seed;
  answer["method"] = result.method.method;
  if (!warnings.empty()) answer["warnings"] = warnings;
  if (!wanted.unused.empty()) answer["unused"] = wanted.unused;
  send(response, answer);
}

void Routes::add_chat() {
  post("/v1/chat/completions", Body::json,
       [this](HttpRequest& request, HttpResponse& response) { chat(request, response); });
}

}  // namespace lamplighter::cli
