#pragma once

#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "tests/decode/loop_law.h"

namespace lamplighter::test {

// A method whose pictures have the target's law.
struct MethodCase {
  std::string name;
  Method method;
  bool row_ends = false;
  std::int64_t interval = -1;  // SamplingOptions::cfg_interval

  SamplingOptions sampling() const {
    SamplingOptions sampling = law_sampling();
    sampling.cfg_interval = interval;
    return sampling;
  }
};

inline void PrintTo(const MethodCase& test, std::ostream* out) {
  *out << test.name;
}

inline void expect_law(const Toy& toy, const Models& models, const MethodCase& test) {
  const SamplingOptions sampling = test.sampling();
  const std::int64_t pictures = law_pictures(std::int64_t{1} << 15);
  const DrawnLaw drawn = drawn_law(toy, models, test.method, sampling, pictures);
  EXPECT_GT(drawn.accepted, pictures / 6);
  EXPECT_TRUE(fits(exact_law(toy, sampling), drawn.counts));
}

// The same where slots are refilled.
inline void expect_law_of_slots(const Toy& toy, const Models& models, const MethodCase& test) {
  const SamplingOptions sampling = test.sampling();
  EXPECT_TRUE(fits(exact_law(toy, sampling),
                   law_of_slots(toy, test.method, sampling, law_pictures(1 << 13), 48, models)));
}

}  // namespace lamplighter::test
