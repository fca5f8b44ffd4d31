#pragma once

#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "tests/decode/loop_distribution.h"

namespace lamplighter::test {

// A method whose images have the target's distribution.
struct MethodCase {
  std::string name;
  Method method;
  bool row_ends = false;
  std::int64_t interval = -1;  // SamplingOptions::cfg_interval

  SamplingOptions sampling() const {
    SamplingOptions sampling = run_sampling();
    sampling.cfg_interval = interval;
    return sampling;
  }
};

inline void PrintTo(const MethodCase& test, std::ostream* out) {
  *out << test.name;
}

inline void expect_distribution(const Toy& toy, const Models& models, const MethodCase& test) {
  const SamplingOptions sampling = test.sampling();
  const std::int64_t images = distribution_images(std::int64_t{1} << 15);
  const SampledDistribution sampled = sampled_distribution(toy, models, test.method, sampling, images);
  EXPECT_GT(sampled.accepted, images / 6);
  EXPECT_TRUE(fits(lossless_distribution(toy, sampling), sampled.counts));
}

// The same where slots are refilled.
inline void expect_distribution_of_slots(const Toy& toy, const Models& models, const MethodCase& test) {
  const SamplingOptions sampling = test.sampling();
  EXPECT_TRUE(
      fits(lossless_distribution(toy, sampling),
           distribution_of_slots(toy, test.method, sampling, distribution_images(1 << 13), 48, models)));
}

}  // namespace lamplighter::test
