#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>

#include "base/stopwatch.h"
#include "pipeline/continuous_drawing.h"
#include "pipeline/session.h"
#include "pipeline/worker.h"

namespace lamplighter {

// What Session is, of continuous tokens: a picture joins those in work after any round of passes.
class ContinuousSession {
 public:
  struct Tools {
    const Manifest& manifest;
    const ContinuousRun& run;
    int slots;                                              // pictures side by side
    std::function<Image(const at::Tensor& latents)> paint;  // fp32 [1, C, rows, columns]
  };

  // `first` is the request that it begins with. All of it outlives the session.
  ContinuousSession(const Tools& tools, Feed& feed, FedRequest first, const Session::Calls& calls);

  // As Session::run.
  std::optional<FedRequest> run();

 private:
  struct Work {
    FedRequest fed;
    double started = 0;      // milliseconds, as decoding_ was
    std::int64_t drawn = 0;  // tokens that the feed was told of
  };

  std::optional<ContinuousRequest> next();
  void after_round(ContinuousPictures& pictures);
  void hand_over(const ContinuousPicture& picture);

  Tools tools_;
  Feed& feed_;
  const Session::Calls& calls_;
  ResolvedRequest kind_;               // what all of them are like
  std::optional<FedRequest> waiting_;  // begins next, here or in another session
  std::map<std::int64_t, Work> work_;  // by picture
  std::int64_t begun_ = 0;             // pictures
  Stopwatch watch_;
  double decoding_ = 0;  // milliseconds of decoding so far
  Worker worker_;
};

}  // namespace lamplighter
