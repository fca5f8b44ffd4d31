#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "lamplighter/pipeline.h"
#include "pipeline/resolved_request.h"
#include "pipeline/scheduler/backend.h"

namespace lamplighter {

struct ScheduledRequest {
  std::uint64_t number = 0;  // that the source knows it by
  ResolvedRequest request;
};

// An image in work, or complete and not handed over yet.
struct ScheduledImage {
  ScheduledRequest scheduled;
  double began_ms = 0, ended_ms = 0;       // on the clock of the run, which counts decoding alone
  std::int64_t tokens = 0, committed = 0;  // so far, and by the newest step
  bool is_stepped = false;                 // the newest step says something of it
  bool begins_part = false;                // as in ImageStep
  bool is_complete = false;
};
using ScheduledImages = std::map<std::int64_t, ScheduledImage>;  // by the backend's number

// Where the scheduler gets requests from, and where it hands over what becomes of them. Calls come from the
// thread that runs the scheduler; `complete` and `fail` also from the one that decodes images.
class ResolvedSource {
 public:
  using Fits = std::function<bool(const ResolvedRequest& request)>;
  using CodesOf = std::function<std::vector<std::int32_t>(std::int64_t image)>;

  virtual ~ResolvedSource() = default;
  // The next request to begin beside those in work, which `fits`; none: none for the moment. `is_idle`: no
  // image is in work, so that the call may wait, and may return a request that does not fit, to begin another
  // run.
  virtual std::optional<ScheduledRequest> next(const Fits& fits, bool is_idle) = 0;
  // What a run that begins with this request has to make room for.
  virtual RunLimits limits(const ScheduledRequest& first) const = 0;
  // Prompts of the requests that are likely to begin next.
  virtual std::vector<PromptPointer> upcoming() const { return {}; }
  // Whether images are handed over in the order in which they began.
  virtual bool is_ordered() const { return false; }

  // Called before every step for every image in work but the newest ones; false cancels it.
  virtual bool is_wanted(std::uint64_t /*number*/) { return true; }
  // Called after every step.
  virtual void progress(const ScheduledImages& images, const CodesOf& codes) = 0;
  virtual void complete(std::uint64_t number, Result&& result) = 0;
  // A request failed. What this throws ends the run.
  virtual void fail(std::uint64_t number, const std::exception_ptr& failure) = 0;
};

}  // namespace lamplighter
