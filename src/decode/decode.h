#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "decode/parts.h"
#include "decode/prefill.h"
#include "decode/replay.h"
#include "decode/report_reader.h"
#include "decode/slots.h"
#include "lamplighter/error.h"

// The decode loop: from embedded prompts to image tokens.
namespace lamplighter {

// A run of images side by side, cycle by cycle. They are numbered 0, 1, ... in the order in which they begin.
class DecodeRun {
 public:
  // Models and method outlive the run.
  DecodeRun(const Models& models, const Method& method, const RunShape& shape);

  std::int64_t free_slots() const { return slots_.free() - parts_.waiting(); }
  bool is_idle() const { return slots_.idle() && parts_.waiting() == 0; }
  // Frees the slot of an image before it is complete.
  void drop(std::int64_t image);
  // Begins images, at most as many as slots are free, and runs a cycle. Returns the report of this cycle; on
  // a device, that of the cycle before it. The slots of images that it shows complete are free.
  std::optional<Report> step(const PendingImages& images = {});

 private:
  DecodeState make(std::int64_t slots) const;

  const Models models_;
  const Method& method_;
  const RunShape shape_;
  DecodeState state_;
  Replay replay_;
  at::Tensor record_;  // with RunShape::record, the newest; the graph's own where cycles are replayed
  Slots slots_;
  Parts parts_;
  ReportReader reports_;
};

// What an image fails with whose report says that the target's logits are NaN or infinite.
Error bad_target();

// Returns images to begin, as many as asked for. Fewer: no others come.
using NextImages = std::function<PendingImages(std::int64_t most)>;
// Called with every report; false stops the run with Error(ExitCode::interrupted).
using OnCycle = std::function<bool(const Report&)>;

// A whole run: when an image is complete, the next takes its slot. Throws bad_target() when it happens to
// one.
void decode(const Models& models, const Method& method, const RunShape& shape, const NextImages& next,
            const OnCycle& on_cycle);

// The same for images that begin together; returns codebook indices int64 [I, rows * columns] on the CPU, in
// raster order.
at::Tensor decode(const Models& models, const Method& method, const Prompts& prompts,
                  const std::vector<DecodeRequest>& requests, const Grid& grid, const OnCycle& on_cycle = {});

}  // namespace lamplighter
