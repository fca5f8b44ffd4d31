#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "lamplighter/pipeline.h"
#include "lamplighter/sinks.h"
#include "serve/metrics.h"
#include "serve/parse.h"
#include "serve/queue.h"
#include "serve/store.h"

namespace lamplighter {

struct ServiceOptions {
  RequestRules rules;
  std::map<std::string, std::string> aliases;  // other names of models
  std::size_t queue = 64;                      // images that may wait, for every model
  std::chrono::seconds url_lifetime{600};
  std::size_t url_bytes = std::size_t{256} << 20;
};

// The models of a server, each with an engine that runs in a thread of its own.
class Service {
 public:
  // A bundle, its engine and its queue.
  class Model {
   public:
    Model(const std::string& bundle, const RuntimeOptions& runtime, const MethodOptions& method,
          std::size_t queue, Metrics& metrics);
    ~Model();  // closes the queue and waits until it is empty

    const std::string& name() const { return engine.manifest().name; }
    // The exception that ended the engine; null while it runs.
    std::exception_ptr failure() const;

    TextToImage engine;
    const Origin origin;
    const MethodOptions method;  // of requests that name none
    Queue queue;

   private:
    void run();
    void describe(TextJob& job);

    std::size_t generated_ = 0;  // images, by the engine's thread
    mutable std::mutex mutex_;
    std::exception_ptr failure_;
    std::thread thread_;
  };

  explicit Service(const ServiceOptions& options);

  // Throws Error (bundle, device, memory, usage: a name that is there).
  Model& add(const std::string& bundle, const RuntimeOptions& runtime, const MethodOptions& method);

  // The model of a name or alias, the first for "". A name that nothing has stands for the only model there
  // is, unless the rules are strict; `warnings` says so. Throws HttpError (404).
  Model& model(const std::string& name, std::vector<std::string>& warnings);
  // Null where no model has this name or alias.
  Model* find(const std::string& name);
  const std::vector<std::unique_ptr<Model>>& models() const { return models_; }

  // Whether all engines are ready. Rethrows the exception that ended one of them.
  bool is_ready() const;
  // Refuses new jobs.
  void close();
  bool is_closed() const { return closed_; }
  // Whether no job waits and none is in work.
  bool is_idle() const;

  std::string metrics_text() const;

  const ServiceOptions options;
  Metrics metrics;
  ImageStore store;

 private:
  std::vector<std::unique_ptr<Model>> models_;
  std::atomic<bool> closed_{false};
};

}  // namespace lamplighter
