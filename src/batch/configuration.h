#pragma once

#include "base/json.h"
#include "batch/run.h"
#include "lamplighter/bundle.h"
#include "lamplighter/pipeline.h"
#include "lamplighter/sinks.h"

namespace lamplighter {

// Everything that decides the pictures of a run and their names, to repeat it. `manifest` is the bundle's.
Json describe_run(const BatchOptions& options, const Plan& plan, const Manifest& manifest,
                  const Origin& origin);

// What a picture's record is once it is drawn, but for its file.
Record complete_record(Record record, const Result& result);

}  // namespace lamplighter
