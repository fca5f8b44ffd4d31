#pragma once

#include <cstdint>

#include "base/host_device.h"

// Philox4x32-10, the counter-based generator of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3"
// (SC 2011). Host and device share one function. A random number depends only on the image's seed and on its
// own counter, so it is the same for every batch size, tree shape, shard and resumed run.
namespace lamplighter {

struct PhiloxBlock {
  std::uint32_t word[4];
};

LAMPLIGHTER_HOST_DEVICE inline PhiloxBlock philox4x32(PhiloxBlock counter, std::uint32_t key0,
                                                      std::uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t left = std::uint64_t{0xD2511F53U} * counter.word[0];
    const std::uint64_t right = std::uint64_t{0xCD9E8D57U} * counter.word[2];
    counter = {
        {static_cast<std::uint32_t>(right >> 32) ^ counter.word[1] ^ key0, static_cast<std::uint32_t>(right),
         static_cast<std::uint32_t>(left >> 32) ^ counter.word[3] ^ key1, static_cast<std::uint32_t>(left)}};
    key0 += 0x9E3779B9U;
    key1 += 0xBB67AE85U;
  }
  return counter;
}

// A multiple of 2^-24 in [0, 1). Key: seed, low word first. Counter: step, purpose, node, lane. Uses the
// first output word.
LAMPLIGHTER_HOST_DEVICE inline float philox_uniform(std::uint64_t seed, std::uint32_t step,
                                                    std::uint32_t purpose, std::uint32_t node,
                                                    std::uint32_t lane = 0) {
  const PhiloxBlock block = philox4x32({{step, purpose, node, lane}}, static_cast<std::uint32_t>(seed),
                                       static_cast<std::uint32_t>(seed >> 32));
  return static_cast<float>(block.word[0] >> 8) * 5.9604644775390625e-8F;
}

}  // namespace lamplighter
