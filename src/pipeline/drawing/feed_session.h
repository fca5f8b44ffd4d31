#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>

#include "base/stopwatch.h"
#include "lamplighter/pipeline.h"
#include "pipeline/drawing/worker.h"
#include "pipeline/requests/request.h"

namespace lamplighter {

// A request of a feed, worked out.
struct FedRequest {
  std::uint64_t number = 0;
  ResolvedRequest resolved;
};

// Draws requests of a feed side by side, as long as they can be, and hands over each when it is complete.
// How they are drawn is what sessions of codes and of continuous tokens differ in.
class FeedSession {
 public:
  struct Calls {
    std::function<ResolvedRequest(const Request& request)> resolve;  // without the prompt
    std::function<void(const Request& request, ResolvedRequest& resolved)> tokenise;
  };

  // `first` is the request that it begins with. All of it outlives the session.
  FeedSession(Feed& feed, FedRequest first, const Calls& calls, bool own_thread);
  virtual ~FeedSession() = default;
  FeedSession(const FeedSession&) = delete;
  FeedSession& operator=(const FeedSession&) = delete;

  // Until nothing is in work. Gives back the request that comes next and does not fit; none at the end. What
  // fails is told to the feed.
  std::optional<FedRequest> run();

  // The next request that can be drawn at all: with its prompt, or none.
  static std::optional<FedRequest> take(Feed& feed, const Feed::Fits& fits, bool idle, const Calls& calls);

 protected:
  struct Work {
    FedRequest fed;
    double text = 0, started = 0;  // milliseconds; the latter as decoding_ was
    std::int64_t drawn = 0;        // tokens that the feed was told of, where no report counts them
    bool failed = false;           // its place is not yet free
  };

  // Until nothing is in work.
  virtual void draw() = 0;
  // Whether it can be drawn beside those in work.
  virtual bool fits(const ResolvedRequest& other) const { return other.runs_beside(kind_); }

  // Puts the next request in work, as picture begun_; null where none fits for the moment.
  Work* begin();
  // Tells the feed that one of them cannot be drawn.
  void fail(Work& work, const Error& error);
  // Gives the feed what `complete` makes, beside the drawing of other pictures.
  void hand_over(std::uint64_t number, std::function<Result()> complete);

  Feed& feed_;
  ResolvedRequest kind_;               // what all of them are like
  std::map<std::int64_t, Work> work_;  // by picture
  std::int64_t begun_ = 0;             // pictures
  Stopwatch watch_;
  double decoding_ = 0;  // milliseconds of decoding so far

 private:
  const Calls& calls_;
  std::optional<FedRequest> waiting_;  // begins next, here or in another session
  Worker worker_;
};

}  // namespace lamplighter
