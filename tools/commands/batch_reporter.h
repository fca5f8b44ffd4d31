#pragma once

#include <chrono>
#include <string>

#include "base/json.h"
#include "batch/run.h"
#include "tools/terminal.h"

namespace lamplighter::cli {

// Tells of a run of `batch`: a bar on a terminal, a line a minute elsewhere, or events as JSON lines.
class BatchReporter {
 public:
  // folder: of the run.
  BatchReporter(std::string folder, bool json, Terminal& terminal);

  void begin(const BatchPlan& plan, const Shard& shard);
  void progress(const BatchProgress& progress);
  // An image that was generated or failed.
  void image(const Record& record, const BatchProgress& progress);
  void end(const BatchProgress& progress);

 private:
  void event(const Json& json) { terminal_.result(to_text(json)); }

  std::string folder_;
  bool json_;
  Terminal& terminal_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now(), reported_ = began_;
};

}  // namespace lamplighter::cli
