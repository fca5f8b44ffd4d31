#include "serve/service.h"

#include <algorithm>
#include <map>

#include "base/memory.h"
#include "base/message.h"
#include "base/suggestion.h"
#include "lamplighter/error.h"
#include "lamplighter/method.h"

namespace lamplighter {

Service::Model::Model(const std::string& bundle, const RuntimeOptions& runtime,
                      const MethodOptions& default_method, std::size_t most, Metrics& metrics)
    : engine(bundle, runtime),
      origin(describe_origin(engine)),
      method(default_method),
      queue(most, runtime.batch_size,
            [this, &metrics](const Result& result, const ImageTimes& times) {
              metrics.generated(name(), result, times);
              if (++generated_ % kReleaseEvery == 0) release_free_memory();
            }),
      thread_([this] { run(); }) {}

Service::Model::~Model() {
  queue.close();
  thread_.join();
}

void Service::Model::run() {
  try {
    do {
      engine.serve(queue, method);
      while (const std::shared_ptr<TextJob> text = queue.next_text()) describe(*text);
    } while (!queue.is_over());
  } catch (const std::exception&) {
    const std::lock_guard lock(mutex_);
    failure_ = std::current_exception();
    queue.fail({500, "internal_error", "the engine has failed"});
  }
}

void Service::Model::describe(TextJob& job) {
  try {
    job.complete(engine.describe(job.request, job.method, [&](const std::string& more) {
      job.grow(more);
      return job.is_wanted() && !job.is_late();
    }));
  } catch (const Error& error) {
    const HttpError late(504, "deadline_exceeded", "the deadline passed before the text was complete");
    job.fail(job.is_late() ? late : to_http_error(error));
  }
}

std::exception_ptr Service::Model::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

Service::Service(const ServiceOptions& given) : options(given), store(given.url_lifetime, given.url_bytes) {}

Service::Model& Service::add(const std::string& bundle, const RuntimeOptions& runtime,
                             const MethodOptions& method) {
  const Manifest manifest = read_manifest(bundle);
  require_generatable(manifest);
  const MethodOptions chosen =
      choose_method(method, manifest, runtime, static_cast<std::size_t>(runtime.batch_size), runtime.note);
  resolve_method(chosen, manifest);
  auto added = std::make_unique<Model>(bundle, runtime, chosen, options.queue, metrics);
  for (const auto& model : models_) {
    if (model->name() == added->name())
      throw Error(ExitCode::usage,
                  "model: two bundles have the name " + model->name() + ", expected different names");
  }
  models_.push_back(std::move(added));
  return *models_.back();
}

Service::Model* Service::find(const std::string& name) {
  const auto alias = options.aliases.find(name);
  const std::string& wanted = alias == options.aliases.end() ? name : alias->second;
  for (const auto& model : models_) {
    if (model->name() == wanted) return model.get();
  }
  return nullptr;
}

Service::Model& Service::model(const std::string& name, std::vector<std::string>& warnings) {
  if (name.empty()) return *models_.front();
  if (Model* found = find(name)) return *found;
  std::vector<std::string> names;
  for (const auto& model : models_) names.push_back(model->name());
  for (const auto& [alias, of] : options.aliases) names.push_back(alias);
  if (options.rules.strict || models_.size() > 1) {
    throw HttpError(404, "model_not_found",
                    "model: this server has no such model, expected one of " + list_of(names));
  }
  warnings.push_back("model: got " + quote(name) + ", the only one here is " + models_.front()->name());
  return *models_.front();
}

bool Service::is_ready() const {
  bool ready = true;
  for (const auto& model : models_) {
    if (const std::exception_ptr failure = model->failure()) std::rethrow_exception(failure);
    ready = ready && model->queue.started();
  }
  return ready;
}

void Service::close() {
  closed_ = true;
  for (const auto& model : models_) model->queue.close();
}

bool Service::is_idle() const {
  return std::all_of(models_.begin(), models_.end(), [](const auto& model) {
    const Queue::State state = model->queue.state();
    return state.waiting == 0 && state.in_work == 0 && state.texts == 0;
  });
}

std::string Service::metrics_text() const {
  std::map<std::string, Metrics::Gauges> gauges;
  for (const auto& model : models_) {
    const Queue::State state = model->queue.state();
    gauges[model->name()] = {state.waiting, state.in_work};
  }
  return metrics.text(gauges);
}

}  // namespace lamplighter
