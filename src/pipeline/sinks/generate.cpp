#include <utility>

#include "lamplighter/error.h"
#include "lamplighter/sinks.h"

namespace lamplighter {
namespace {

// The error that ended the run is the one to tell of.
void tell_stopped(Sink& sink) {
  try {
    sink.stopped();
  } catch (...) {
  }
}

}  // namespace

void generate_into(const Sinks& sinks, TextToImage& engine, const std::vector<Request>& requests,
                   const MethodOptions& method, const std::function<bool()>& go_on,
                   const TurnCallback& turn) {
  try {
    engine.generate(
        requests,
        [&](std::size_t index, Result&& result) {
          const Result complete = std::move(result);
          for (const auto& sink : sinks) sink->picture(index, requests[index], complete);
          if (go_on && !go_on()) throw Error(ExitCode::interrupted, "stopped");
        },
        [&](const Progress& progress) {
          for (const auto& sink : sinks) sink->progress(progress);
          return !go_on || go_on();
        },
        method, turn);
  } catch (...) {
    for (const auto& sink : sinks) tell_stopped(*sink);
    throw;
  }
  for (const auto& sink : sinks) sink->done();
}

}  // namespace lamplighter
