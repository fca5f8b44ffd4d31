#pragma once

#include "base/json.h"
#include "batch/run.h"
#include "lamplighter/bundle.h"
#include "lamplighter/pipeline.h"
#include "lamplighter/sinks.h"

namespace lamplighter {

// All settings that decide the images and their names, to repeat the run. `manifest` is the bundle's.
Json describe_run(const BatchOptions& options, const Plan& plan, const Manifest& manifest,
                  const Origin& origin);

// Adds the results of a generated image to its record, except the file's.
Record complete_record(Record record, const Result& result);

}  // namespace lamplighter
