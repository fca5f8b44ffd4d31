#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "decode/prefill.h"
#include "decode/report.h"

namespace lamplighter {

// The image slots of a run, as the host sees them: an image that is complete makes room for the next one
// while the others go on.
class Slots {
 public:
  // A state with some slots, all of them free.
  using MakeState = std::function<DecodeState(std::int64_t slots)>;

  explicit Slots(std::int64_t count) : count_(count), images_(static_cast<std::size_t>(count), kFree) {}

  // Images that wait, for the slots that are free; slots of images that were dropped are free from now on.
  PendingImages take(const NextImages& next, DecodeState& state);
  // Gives free slots of the run to images that have begun. Slots that had gone away come back for them.
  void place(DecodeState begun, DecodeState& state, const MakeState& make);
  // While no image waits, slots that are free go away on the CPU, where they would cost time; on a device
  // they stand still.
  void shrink(DecodeState& state);
  // Frees the slots of images that are complete.
  void release(const Report& report, std::int64_t total);

  bool idle() const;  // nothing is drawn

 private:
  static constexpr std::int64_t kFree = -1;
  std::int64_t busy() const;
  void drop(std::int64_t image, DecodeState& state);
  void widen(std::int64_t slots, DecodeState& state, const MakeState& make);

  std::int64_t count_;                // of slots at most
  std::vector<std::int64_t> images_;  // by slot: an image's number
  std::int64_t begun_ = 0;            // images that were given out
  bool more_ = true;                  // some may wait
  bool open_ = false;                 // and if none does, some may come
};

}  // namespace lamplighter
