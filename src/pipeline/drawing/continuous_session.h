#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "pipeline/drawing/continuous_drawing.h"
#include "pipeline/drawing/feed_session.h"

namespace lamplighter {

// A session of pictures of continuous tokens: one joins those in work after any round of passes.
class ContinuousSession : public FeedSession {
 public:
  struct Tools {
    const Manifest& manifest;
    const ContinuousRun& run;
    int slots;                                              // pictures side by side
    std::function<Image(const at::Tensor& latents)> paint;  // fp32 [1, C, rows, columns]
  };

  // All but `first` outlives the session.
  ContinuousSession(Tools tools, Feed& feed, FedRequest first, const Calls& calls);

 private:
  void draw() override;
  std::optional<ContinuousRequest> next();
  void after_round(ContinuousPictures& pictures);
  void complete(const ContinuousPicture& picture);

  Tools tools_;
};

}  // namespace lamplighter
