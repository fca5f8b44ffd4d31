#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>

#include "base/stopwatch.h"
#include "decode/decode.h"
#include "decode/recorder.h"
#include "lamplighter/pipeline.h"
#include "pipeline/drawing.h"
#include "pipeline/request.h"
#include "pipeline/worker.h"

namespace lamplighter {

// What became of work that failed, for those who wait for it.
Error told(const std::exception& error);

// A request of a feed, worked out.
struct FedRequest {
  std::uint64_t number = 0;
  ResolvedRequest resolved;
};

// Draws requests of a feed side by side, as long as they can be, and hands over each when it is complete.
class Session {
 public:
  struct Calls {
    std::function<Image(const Codes& codes)> paint;
    std::function<ResolvedRequest(const Request& request)> resolve;  // without the prompt
    std::function<void(const Request& request, ResolvedRequest& resolved)> tokenise;
  };

  // `first` is the request that it begins with. All of it outlives the session.
  Session(const Drawing::Tools& tools, Feed& feed, FedRequest first, const Calls& calls);

  // Until nothing is in work. Gives back the request that comes next and does not fit; none at the end. What
  // fails is told to the feed.
  std::optional<FedRequest> run();

  // The next request that can be drawn at all: with its prompt, or none.
  static std::optional<FedRequest> take(Feed& feed, const Feed::Fits& fits, bool idle, const Calls& calls);

 private:
  struct Work {
    FedRequest fed;
    double text = 0, started = 0;  // milliseconds; the latter as decoding_ was
  };

  bool fits(const ResolvedRequest& other) const;
  RunShape shape() const;
  PendingImages next(std::int64_t most);
  std::vector<std::int64_t> drop_unwanted();
  void after_cycle(const Report& report);
  void hand_over(std::int64_t image);
  void fail(const Error& error);

  const Manifest& manifest() const { return tools_.models.target->manifest(); }

  Drawing::Tools tools_;
  Feed& feed_;
  const Calls& calls_;
  ResolvedRequest kind_;  // what all of them are like
  bool guided_;
  std::optional<FedRequest> waiting_;  // begins next, here or in another session
  Recorder recorder_;
  std::map<std::int64_t, Work> work_;  // by image
  std::int64_t begun_ = 0;             // images
  Stopwatch watch_;
  double decoding_ = 0;  // milliseconds of decoding so far
  Worker worker_;
};

}  // namespace lamplighter
