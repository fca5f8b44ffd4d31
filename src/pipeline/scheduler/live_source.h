#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>

#include "lamplighter/pipeline.h"
#include "pipeline/scheduler/resolved_source.h"

namespace lamplighter {

// Requests that come while others are generated. Those that fail do not end the run.
class LiveSource : public ResolvedSource {
 public:
  // Resolves a request, `tokenise`: its prompt, too.
  using Resolve = std::function<ResolvedRequest(const Request& request, bool tokenise)>;

  // The source of requests outlives it. `slots`: images side by side at most.
  LiveSource(RequestSource& requests, int slots, Resolve resolve)
      : requests_(requests), slots_(slots), resolve_(std::move(resolve)) {}

  std::optional<ScheduledRequest> next(const Fits& fits, bool is_idle) override;
  RunLimits limits(const ScheduledRequest& /*first*/) const override { return {slots_}; }
  bool is_wanted(std::uint64_t number) override { return requests_.is_wanted(number); }
  void progress(const ScheduledImages& images, const CodesOf& codes) override;
  void complete(std::uint64_t number, Result&& result) override;
  void fail(std::uint64_t number, const std::exception_ptr& failure) override;

 private:
  RequestSource& requests_;
  const int slots_;
  const Resolve resolve_;
};

}  // namespace lamplighter
