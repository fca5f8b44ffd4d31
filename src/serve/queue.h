#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "lamplighter/pipeline.h"
#include "serve/order.h"

namespace lamplighter {

// Orders that wait for one engine, first come, first served: what fits beside the pictures in work may pass
// the first one a few times. Safe to use from several threads.
class Queue : public Feed {
 public:
  // Told of every picture that is complete, and how long it waited for its turn.
  using OnPicture = std::function<void(const Result& result, double waited_s)>;

  // At most `limit` pictures wait; `slots` are drawn side by side.
  Queue(std::size_t limit, int slots, OnPicture on_picture);

  // Throws Refusal where the queue is full or closed.
  std::shared_ptr<Order> submit(std::vector<Request> requests, double deadline_s, bool follows);
  // No more orders come; those that are there are drawn.
  void close();

  // Whether the engine has asked for pictures: its weights are loaded.
  bool started() const;
  // The engine has ended by an error: whoever waits is told.
  void fail(const Refusal& refusal);

  struct State {
    std::size_t waiting = 0, in_work = 0;              // pictures
    std::int64_t tokens_done = 0, tokens_in_work = 0;  // of those in work
    double picture_s = 0;                              // between two pictures lately; 0: not known
  };
  State state() const;

  std::optional<Entry> next(const Fits& fits, bool idle) override;
  bool is_wanted(std::uint64_t number) override;
  void progress(std::uint64_t number, const Grid& grid, const std::vector<std::int32_t>& codes,
                std::int64_t committed) override;
  void picture(std::uint64_t number, Result&& result) override;
  void failed(std::uint64_t number, const Error& error) override;

 private:
  struct Place {
    std::uint64_t number = 0;
    std::shared_ptr<Order> order;
    std::size_t picture = 0;
    double waited_s = 0;
    std::int64_t done = 0, total = 0;  // tokens
  };

  // The rest with the lock held.
  void drop_unwanted();
  std::deque<Place>::iterator choose(const Fits& fits, bool idle);
  int seconds_to_wait() const;

  const std::size_t limit_;
  const int slots_;
  const OnPicture on_picture_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Place> waiting_;
  std::map<std::uint64_t, Place> in_work_;
  std::uint64_t submitted_ = 0;  // pictures
  int passed_ = 0;               // how often the first was
  bool started_ = false, closed_ = false;
  double picture_s_ = 0;
};

}  // namespace lamplighter
