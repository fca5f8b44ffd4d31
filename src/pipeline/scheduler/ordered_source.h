#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <vector>

#include "lamplighter/pipeline.h"
#include "pipeline/scheduler/resolved_source.h"

namespace lamplighter {

// The requests of one call, which are numbered in their order. Results come in this order; the first failure
// ends the run.
class OrderedSource : public ResolvedSource {
 public:
  struct Callbacks {
    const ResultCallback& on_result;
    const ProgressCallback& on_progress;
    const AdmissionCallback& on_admission;
  };

  // `slots`: images side by side at most. Requests, groups and callbacks outlive the source.
  OrderedSource(const std::vector<ResolvedRequest>& requests, const std::vector<RequestGroup>& groups,
                std::size_t slots, const Callbacks& callbacks)
      : requests_(requests), groups_(groups), slots_(slots), callbacks_(callbacks) {}

  std::optional<ScheduledRequest> next(const Fits& fits, bool is_idle) override;
  RunLimits limits(const ScheduledRequest& first) const override;
  std::vector<PromptPointer> upcoming() const override;
  bool is_ordered() const override { return true; }
  // Throws Error(ExitCode::interrupted) when the callback stops the run.
  void progress(const ScheduledImages& images, const CodesOf& codes) override;
  void complete(std::uint64_t number, Result&& result) override;
  void fail(std::uint64_t /*number*/, const std::exception_ptr& failure) override {
    std::rethrow_exception(failure);
  }

 private:
  const RequestGroup& group_of(std::size_t request) const;

  const std::vector<ResolvedRequest>& requests_;
  const std::vector<RequestGroup>& groups_;
  const std::size_t slots_;
  const Callbacks callbacks_;
  std::size_t next_ = 0;  // the first request that was not asked about
  std::mutex calling_;    // one callback runs at a time
};

}  // namespace lamplighter
