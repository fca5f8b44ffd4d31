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
  QueueOptions queue;         // of work that is shared while it is done; empty: the shard's captions
  int retries = 1;            // further tries of a picture that could not be drawn
  bool force_config = false;  // go on under another configuration
  bool verify = false;        // compare the pictures that stand with their checksums
  bool metadata = true;       // text in the PNG files
};

// How far a process is with its part of a run.
struct BatchProgress {
  std::size_t pictures = 0;           // of its part; of the whole run where work is shared by a queue
  std::size_t present = 0;            // were there when it began
  std::size_t drawn = 0, failed = 0;  // by this process
  double in_work = 0;                 // pictures' worth of tokens that are drawn of those in work
  std::int64_t tokens = 0, target_passes = 0;  // of the pictures drawn
  std::size_t cut = 0;                         // of the pictures drawn, those whose captions were too long
};

// What is told on the way, one call at a time, not all from one thread.
struct BatchCalls {
  std::function<void(const BatchProgress& progress)> progress;
  std::function<void(const Record& record, const BatchProgress& progress)> picture;  // drawn, or failed
  std::function<bool()> go_on;  // false: pictures in work are completed, and no other begins
};

// What a run would draw and what is there of it, without drawing.
struct BatchPlan {
  Plan plan;
  std::vector<std::size_t> missing;  // of the plan's pictures, those of the shard that are not there
  std::size_t part = 0;              // pictures of the shard
  std::size_t misunderstood = 0;     // captions with no subject or with words that the bundle does not know
};
// Reads captions and the bundle's manifest. Throws Error (usage, input, bundle).
BatchPlan plan_batch(const BatchOptions& options);

// Draws what is missing of a shard. A picture that cannot be drawn beside others is tried alone, then again
// up to `retries` times, and then recorded as failed; when many in a row fail, the run gives up. Throws
// Error(ExitCode::interrupted) when it was asked to stop, what plan_batch throws, and Error (output, bundle,
// device, memory).
BatchProgress run_batch(const BatchOptions& options, const BatchPlan& plan, const BatchCalls& calls);

}  // namespace lamplighter
