#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "base/stopwatch.h"
#include "decode/decode.h"
#include "decode/prompts.h"
#include "decode/recorder.h"
#include "lamplighter/pipeline.h"
#include "pipeline/drawing/prompt_reader.h"
#include "pipeline/drawing/worker.h"
#include "pipeline/requests/request.h"

namespace lamplighter {

// Draws requests of one grid side by side and hands their results over in request order. Pictures are painted
// and handed over beside the decoding of the next ones, where the machine has more than one thread for it.
class Drawing {
 public:
  // What requests are drawn with; all of it outlives the drawing.
  struct Tools {
    Models models;
    const PromptEncoder& prompts;
    const RuntimeOptions& options;
    const MethodOptions& resolved;
    const Method& method;
  };
  // What is asked and told on the way.
  struct Calls {
    std::function<Image(const Codes& codes)> paint;
    const ResultCallback& on_result;
    const ProgressCallback& on_progress;
    TurnCallback turn;
  };

  // Of all requests of a run, those of one group.
  Drawing(const Tools& tools, const std::vector<ResolvedRequest>& requests, const RequestGroup& group,
          Calls calls);

  // Throws what the callbacks throw, and Error(ExitCode::interrupted) when progress is told to stop.
  void run();

 private:
  std::size_t slots() const;
  RunShape shape() const;
  bool has_next();  // moves next_ on to a request whose turn is to be drawn
  PendingImages next(std::int64_t most);
  bool after_cycle(const Report& report);
  bool tell_progress();
  void hand_over(std::size_t image);

  const Manifest& manifest() const { return tools_.models.target->manifest(); }
  Drawn& drawn(std::size_t image) { return recorder_.of(static_cast<std::int64_t>(image)); }

  Tools tools_;
  const std::vector<ResolvedRequest>& requests_;
  RequestGroup group_;
  Calls calls_;
  const Grid& grid_;
  std::vector<DecodeRequest> draws_;  // of all requests of the group
  bool guided_ = false, padded_ = false;
  Recorder recorder_;
  PromptReader reader_;
  std::size_t next_;                // request whose turn has not come
  std::vector<std::size_t> begun_;  // the requests of images, in the order in which they began
  std::size_t handed_ = 0;          // images before this one are handed over
  Stopwatch watch_;
  double decoding_ = 0;  // milliseconds of decoding so far
  struct Times {
    double text = 0, started = 0, finished = 0;  // the latter as decoding_ was
  };
  std::map<std::size_t, Times> times_;  // by image
  std::mutex callbacks_;                // one of them runs at a time
  Worker worker_;
};

// Throws Error(ExitCode::bundle) where the drafter of a picture that is complete has drafted nothing.
void require_drafts(const Drawing::Tools& tools, const Drawn& drawn);

}  // namespace lamplighter
