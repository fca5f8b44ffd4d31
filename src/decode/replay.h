#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "lamplighter/options.h"

namespace lamplighter {

// Runs the same work on a device again and again: straight-line, with fixed shapes and addresses and without
// a word from the device to the host. On CUDA it is captured as a graph after a few calls that warm up, and
// replayed from then on; elsewhere, and where capture fails (told to `note`, once), it is called.
// While an object lives, what its thread queues on a CUDA device goes to a stream of its own.
class Replay {
 public:
  // Without `graph` nothing is captured.
  Replay(const c10::Device& device, bool graph, NoteCallback note = {});
  ~Replay();
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  void run(const std::function<void()>& work);

  // Whether work is, or is going to be, captured: its parts cannot be timed.
  bool captures() const;
  // Kernels in the graph; 0 while there is none.
  std::int64_t kernels() const;

 private:
  struct Capture;
  std::unique_ptr<Capture> capture_;
};

}  // namespace lamplighter
