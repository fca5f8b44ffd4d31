#include <utility>

#include "lamplighter/error.h"
#include "lamplighter/sinks.h"

namespace lamplighter {
namespace {

// What a sink throws here would hide the error that ended the run.
void stop(Sink& sink) {
  try {
    sink.stopped();
  } catch (...) {
  }
}

}  // namespace

void generate_into(const Sinks& sinks, TextToImage& engine, const std::vector<Request>& requests,
                   const MethodOptions& method, const std::function<bool()>& go_on,
                   const AdmissionCallback& on_admission) {
  try {
    engine.generate(
        requests,
        [&](std::size_t index, Result&& result) {
          const Result complete = std::move(result);
          for (const auto& sink : sinks) sink->image(index, requests[index], complete);
          if (go_on && !go_on()) throw Error(ExitCode::interrupted, "stopped");
        },
        [&](const Progress& progress) {
          for (const auto& sink : sinks) sink->progress(progress);
          return !go_on || go_on();
        },
        method, on_admission);
  } catch (...) {
    for (const auto& sink : sinks) stop(*sink);
    throw;
  }
  for (const auto& sink : sinks) sink->done();
}

}  // namespace lamplighter
