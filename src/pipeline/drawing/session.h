#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "decode/decode.h"
#include "decode/recorder.h"
#include "pipeline/drawing/drawing.h"
#include "pipeline/drawing/feed_session.h"

namespace lamplighter {

// A session of pictures of codes.
class Session : public FeedSession {
 public:
  using Paint = std::function<Image(const Codes& codes)>;

  // All but `first` outlives the session.
  Session(const Drawing::Tools& tools, Paint paint, Feed& feed, FedRequest first, const Calls& calls);

 private:
  void draw() override;
  bool fits(const ResolvedRequest& other) const override;
  RunShape shape() const;
  PendingImages next(std::int64_t most);
  std::vector<std::int64_t> drop_unwanted();
  void after_cycle(const Report& report);
  void complete(std::int64_t image);

  const Manifest& manifest() const { return tools_.models.target->manifest(); }

  Drawing::Tools tools_;
  Paint paint_;
  bool guided_;
  Recorder recorder_;
};

}  // namespace lamplighter
