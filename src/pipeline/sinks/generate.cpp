#include <utility>

#include "lamplighter/error.h"
#include "lamplighter/sinks.h"

namespace lamplighter {

void generate_into(const Sinks& sinks, TextToImage& engine, const std::vector<Request>& requests,
                   const MethodOptions& method, const std::function<bool()>& go_on) {
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
      method);
  for (const auto& sink : sinks) sink->done();
}

}  // namespace lamplighter
