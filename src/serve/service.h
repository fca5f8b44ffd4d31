#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
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
  RequestLimits limits;
  std::size_t queue = 64;  // pictures that may wait, for every model
  std::chrono::seconds url_lifetime{600};
  std::size_t url_bytes = std::size_t{256} << 20;
};

// Bundles that draw what HTTP requests ask for, each in a thread of its own.
class Service {
 public:
  // A bundle, its engine and who waits for it.
  class Model {
   public:
    Model(const std::string& bundle, const RuntimeOptions& runtime, const MethodOptions& method,
          std::size_t queue, Metrics& metrics);
    ~Model();  // when its queue is closed and empty

    const std::string& name() const { return engine.manifest().name; }
    // What ended its engine; null while it runs.
    std::exception_ptr failure() const;

    TextToImage engine;
    const Origin origin;
    const MethodOptions method;  // of requests that name none
    Queue queue;

   private:
    void run();

    std::size_t drawn_ = 0;  // pictures, by the engine's thread
    mutable std::mutex mutex_;
    std::exception_ptr failure_;
    std::thread thread_;
  };

  explicit Service(const ServiceOptions& options);

  // Throws Error (bundle, device, memory, usage: a name that is there).
  Model& add(const std::string& bundle, const RuntimeOptions& runtime, const MethodOptions& method);

  // The model of a name, the first for "". Throws Refusal.
  Model& model(const std::string& name);
  const std::vector<std::unique_ptr<Model>>& models() const { return models_; }

  // Whether all engines are ready to draw. Throws what ended one of them.
  bool is_ready() const;
  // No more orders are taken.
  void close();
  bool is_closed() const { return closed_; }
  // Whether nothing waits and nothing is in work.
  bool is_idle() const;

  std::string metrics_text() const;

  const ServiceOptions options;
  Metrics metrics;
  PictureStore store;

 private:
  std::vector<std::unique_ptr<Model>> models_;
  std::atomic<bool> closed_{false};
};

}  // namespace lamplighter
