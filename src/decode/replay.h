#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "lamplighter/options.h"

namespace lamplighter {

// Runs the same work on a device again and again: straight-line, with fixed shapes and addresses, and without
// the host waiting for the device. On CUDA it is captured as a graph after a few warm-up calls and replayed
// from then on. Elsewhere it is called, also where capture fails; `note` then gets one line. While an object
// lives, its thread queues work for a CUDA device on a stream of the object's own.
class Replay {
 public:
  // `graph`: capture the work.
  Replay(const c10::Device& device, bool graph, LogCallback note = {});
  ~Replay();
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  void run(const std::function<void()>& work);

  // Whether work is, or will be, captured: then its parts cannot be timed.
  bool captures() const;
  // Kernels in the graph; 0 while there is none.
  std::int64_t kernels() const;

 private:
  struct Capture;
  std::unique_ptr<Capture> capture_;
};

}  // namespace lamplighter
