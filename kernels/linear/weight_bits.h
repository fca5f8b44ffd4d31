#pragma once

namespace lamplighter {

// While one lives, pack_linear() on its thread rounds weights to 8 or 4 bits; with 16 it packs them as they
// are. Modules pack their own weights when they are prepared: this is how the engine asks them for another
// precision.
class __attribute__((visibility("default"))) WeightBits {
 public:
  explicit WeightBits(int bits);
  ~WeightBits();
  WeightBits(const WeightBits&) = delete;
  WeightBits& operator=(const WeightBits&) = delete;

  // 16 when none lives.
  static int active();

 private:
  int before_;
};

}  // namespace lamplighter
