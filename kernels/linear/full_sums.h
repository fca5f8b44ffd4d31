#pragma once

#include <ATen/Context.h>

namespace lamplighter {

// On CUDA, sums of a product stay in fp32 to the end while this lives; cuBLAS may otherwise add partial sums
// of split products in the 16-bit type.
class FullPrecisionSums {
 public:
  using Option = at::CuBLASReductionOption;

  FullPrecisionSums()
      : bfloat16_(at::globalContext().allowBF16ReductionCuBLAS()),
        float16_(at::globalContext().allowFP16ReductionCuBLAS()) {
    constexpr Option kFull = Option::DisallowReducedPrecisionAllowSplitK;
    set(kFull, kFull);
  }
  ~FullPrecisionSums() { set(bfloat16_, float16_); }
  FullPrecisionSums(const FullPrecisionSums&) = delete;
  FullPrecisionSums& operator=(const FullPrecisionSums&) = delete;

 private:
  static bool reduced(Option option) { return option == Option::AllowReducedPrecisionWithSplitK; }
  static bool split(Option option) { return option != Option::DisallowReducedPrecisionDisallowSplitK; }

  static void set(Option bfloat16, Option float16) {
    at::globalContext().setAllowBF16ReductionCuBLAS(reduced(bfloat16), split(bfloat16));
    at::globalContext().setAllowFP16ReductionCuBLAS(reduced(float16), split(float16));
  }

  Option bfloat16_;
  Option float16_;
};

}  // namespace lamplighter
