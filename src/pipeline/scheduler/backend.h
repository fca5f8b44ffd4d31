#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "draft/method_table.h"
#include "lamplighter/error.h"
#include "lamplighter/pipeline.h"
#include "pipeline/resolved_request.h"

namespace lamplighter {

// What a backend has to make room for.
struct RunLimits {
  std::int64_t slots = 1;                          // images side by side
  std::vector<const ResolvedRequest*> known = {};  // all requests of the run; empty: they come by and by
};

// What a step did to an image.
struct ImageStep {
  std::int64_t image = 0;
  std::int64_t tokens = 0;     // committed so far
  std::int64_t committed = 0;  // by this step
  bool begins_part = false;    // one of them by a pass over kept tokens before the cycle
  bool is_complete = false;
  std::optional<Error> failure = std::nullopt;  // set: it cannot be completed
};
struct Step {
  std::vector<ImageStep> images;
  double prefill_ms = 0;  // part of the step's time that belongs to images which began with it
};

// An image whose tokens are complete. `decode` may run on another thread while the backend goes on or after
// its end.
struct CompleteImage {
  Codes codes;
  Statistics statistics;  // without the times of decoding
  std::function<Image(const Codes& codes)> decode;
};

// Generates images side by side, by one method and on one grid. They are numbered 0, 1, ... in the order in
// which they begin.
class Backend {
 public:
  virtual ~Backend() = default;

  // Whether a request of this method and grid may begin beside those in work.
  virtual bool takes(const ResolvedRequest& /*request*/) const { return true; }
  virtual std::int64_t free_slots() const = 0;
  // Begins images. `upcoming`: prompts that are likely to come next.
  virtual void begin(const std::vector<const ResolvedRequest*>& requests,
                     const std::vector<PromptPointer>& upcoming) = 0;
  // Runs one cycle of all images in work.
  virtual Step step() = 0;
  // The tokens of an image in work up to the first that is missing, in raster order; none where they are
  // continuous.
  virtual std::vector<std::int32_t> codes(std::int64_t image) = 0;
  // Gives up an image.
  virtual void drop(std::int64_t image) = 0;
  // Takes out an image that is complete.
  virtual CompleteImage take(std::int64_t image) = 0;
  // Throws Error(memory) where the device has no room to decode an image beside the backend.
  virtual void check_decoding() const {}
};

// The networks of a bundle. It outlives its backends.
class Networks {
 public:
  virtual ~Networks() = default;
  // A backend for a request and others like it.
  virtual std::unique_ptr<Backend> backend(const ResolvedRequest& first, const RunLimits& limits) = 0;
  // Measures the methods on images that are generated together; none where there is no trial of them.
  virtual std::optional<TableRun> try_methods(const std::vector<ResolvedRequest>& /*requests*/) {
    return std::nullopt;
  }
};

}  // namespace lamplighter
