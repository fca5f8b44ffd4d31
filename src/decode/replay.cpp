#include "decode/replay.h"

// Builds without CUDA.
namespace lamplighter {

struct Replay::Capture {};

Replay::Replay(const c10::Device& /*device*/, bool /*graph*/, LogCallback /*note*/) {}
Replay::~Replay() = default;

void Replay::run(const std::function<void()>& work) {
  work();
}

bool Replay::captures() const {
  return false;
}

std::int64_t Replay::kernels() const {
  return 0;
}

}  // namespace lamplighter
