#pragma once

#include <cstdint>
#include <vector>

namespace lamplighter {

// The random numbers of an image of continuous tokens. Every sample is tied to the image's seed, a position
// and what it is for, never to a pass: target and drafter read the same ones ("trajectory alignment", arXiv
// 2411.11925, section 3.2), and a position that is drafted again keeps its own. C = channels, T = denoising
// steps. Virtual so that recorded numbers may take the place of sampled ones.
class RandomNumbers {
 public:
  RandomNumbers(std::uint64_t seed, std::int64_t channels, std::int64_t steps)
      : seed_(seed), channels_(channels), steps_(steps) {}
  virtual ~RandomNumbers() = default;

  // All positions once, in a random order: that in which they are sampled.
  virtual std::vector<std::int64_t> order(std::int64_t positions) const;

  // What the chain begins with, out [C], and the noise of its steps, out [T, C], the last step's first:
  // normal.
  virtual void start(std::int64_t position, float* out) const;
  virtual void noise(std::int64_t position, float* out) const;

  // In [0, 1): verifies the token that was drafted there.
  virtual double verification(std::int64_t position) const;

  // Proposals first .. first + count - 1 in place of a rejected token: normals out [count, C], and
  // what verifies them, uniforms in [0, 1) out [count].
  virtual void proposals(std::int64_t position, std::int64_t first, std::int64_t count, float* normals,
                         double* uniforms) const;

 private:
  std::uint64_t seed_;
  std::int64_t channels_, steps_;
};

}  // namespace lamplighter
