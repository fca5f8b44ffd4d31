#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "decode/report.h"
#include "decode/state.h"

namespace lamplighter {

// The batch slots of a run, as the host sees them: a complete image makes room for the next one while the
// others go on.
class Slots {
 public:
  // Makes a state with free slots.
  using MakeState = std::function<DecodeState(std::int64_t slots)>;

  explicit Slots(std::int64_t count) : count_(count), images_(static_cast<std::size_t>(count), kFree) {}

  std::int64_t free() const { return count_ - busy(); }
  // Gives free slots of the run to images that have begun. Slots that had gone away come back for them.
  void place(DecodeState begun, DecodeState& state, const MakeState& make);
  // Takes free slots out of the state on the CPU, where they would cost time. On a device they stand still.
  void shrink(DecodeState& state);
  // Frees the slot of an image that is not complete.
  void drop(std::int64_t image, DecodeState& state);
  // Frees the slots of images that are complete.
  void release(const Report& report, std::int64_t total);

  bool idle() const;  // all slots are free

 private:
  static constexpr std::int64_t kFree = -1;
  std::int64_t busy() const;
  void widen(std::int64_t slots, DecodeState& state, const MakeState& make);

  std::int64_t count_;                // of slots at most
  std::vector<std::int64_t> images_;  // by slot: an image's number
  std::int64_t begun_ = 0;            // images that were given out
};

}  // namespace lamplighter
