#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "batch/plan.h"
#include "batch/processes/shard.h"
#include "batch/processes/work_queue.h"
#include "batch/record.h"
#include "lamplighter/options.h"

namespace lamplighter {

struct BatchOptions {
  std::string bundle;  // folder
  PlanOptions plan;
  MethodOptions method;
  RuntimeOptions runtime;
  std::string folder;  // of the run, see folder.h
  Shard shard;
  QueueOptions queue;         // for dynamically shared work; empty: fixed shards
  int retries = 1;            // additional tries after a failed one
  bool force_config = false;  // continue a run under another configuration
  bool verify = false;        // check existing images by their checksums
  bool metadata = true;       // write metadata into PNG files
};

// Progress of this process.
struct BatchProgress {
  std::size_t images = 0;                      // images of its part; of the whole run with a queue
  std::size_t present = 0;                     // existing images at the start
  std::size_t generated = 0, failed = 0;       // by this process
  double in_work = 0;                          // sum of the finished fractions of images in work
  std::int64_t tokens = 0, target_passes = 0;  // of the generated images
  std::size_t cut = 0;                         // generated images whose caption was too long
};

// Progress callbacks. They are called one at a time, but not all from the same thread.
struct BatchCalls {
  std::function<void(const BatchProgress& progress)> progress;
  std::function<void(const Record& record, const BatchProgress& progress)> image;  // generated or failed
  std::function<bool()> go_on;  // return false to complete the running images and stop
};

// The plan of a run and what is still missing.
struct BatchPlan {
  Plan plan;
  std::vector<std::size_t> missing;  // missing images of the shard, as indices into the plan
  std::size_t part = 0;              // images of the shard
  std::size_t misunderstood = 0;     // captions without a subject or with unknown words
};
// Reads captions and the bundle's manifest. Throws Error (usage, input, bundle).
BatchPlan plan_batch(const BatchOptions& options);

// Generates the missing images of a shard. When a batch fails, its images are retried alone, up to `retries`
// more times, and then recorded as failed; many consecutive failures end the run. Throws
// Error(ExitCode::interrupted) after a stop, errors of plan_batch, and Error (output, bundle, device,
// memory).
BatchProgress run_batch(const BatchOptions& options, const BatchPlan& plan, const BatchCalls& calls);

}  // namespace lamplighter
