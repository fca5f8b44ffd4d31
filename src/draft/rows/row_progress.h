#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "draft/draft_method.h"

namespace lamplighter {

// All int64 [I, R]. A row that runs and is not open yet prepares its window.
struct RunningRows {
  at::Tensor left;       // codes that a row still needs; 0: it does not run
  at::Tensor limits;     // drafts that it may accept (ParallelWindows::limits)
  at::Tensor positions;  // of its newest code
};

// How far row-parallel decoding is whose rows advance by as many codes a pass as are accepted. Image rows are
// numbered from the first one that is not complete: R = most of them that run at a time. A row below another
// one is shorter by `ahead` codes or more until that one is complete, so at most one row is completed in a
// pass, the first. T = codes of an image, C = cache slots behind the prompt.
class RowProgress {
 public:
  struct Sizes {
    std::int64_t height = 0, width = 0;  // rows and columns of the image
    std::int64_t ahead = 1;
    std::int64_t window = 0;  // drafts of a row
    std::int64_t rows = 1;    // R
    std::int64_t total() const { return height * width; }
  };

  RowProgress(const Sizes& sizes, std::int64_t images, std::int64_t nodes, const c10::Device& device);

  RunningRows running(const RunState& run) const;
  // int64 [I, R], the newest code of every row that runs. A row that begins has the end of the row above it
  // or, until that is known, a placeholder: the newest code of the row above that (ZipAR).
  at::Tensor newest(const RunningRows& rows) const;
  // Bools [I, N, C + 1]: which cache slots hold positions up to each of `positions` int64 [I, N].
  at::Tensor seen_slots(const at::Tensor& positions);

  // The first code of every image.
  void begin_with(const at::Tensor& code);
  // Records codes by their positions, the order they are committed in, and the positions of new cache slots.
  void record(const Draft& draft, const Verified& verified, const RunState& run);
  // Adds what was accepted, int64 [I, at most R]. int64 [I, R]: the row that takes the number of each; none
  // where no row is complete.
  std::optional<at::Tensor> advance(const at::Tensor& accepted, const RunState& run);

  const Sizes& sizes() const { return sizes_; }
  // int64 [I]: a row's end that ran as a placeholder and is now known; -1: none.
  const at::Tensor& placeholder_position() const { return placeholder_position_; }
  const at::Tensor& recomputed() const { return recomputed_; }  // int64 [I]: tokens that ran twice
  const at::Tensor& codes() const { return codes_; }            // int64 [I, T + 1]: by position; -1: unknown
  // int64 [I, > T]: the positions of the codes as they were committed.
  const at::Tensor& order() const { return order_; }
  std::vector<PerImage> per_image();

 private:
  at::Tensor numbers(std::int64_t count) const;  // 0, 1, ..

  Sizes sizes_;
  at::Tensor first_row_;    // int64 [I]: the first row that is not complete
  at::Tensor row_lengths_;  // int64 [I, R]: codes of the rows from there on
  at::Tensor placeholder_position_, recomputed_, codes_;
  at::Tensor slot_positions_;  // int64 [I, C + 1]: the positions that the cache slots hold
  at::Tensor order_;
};

}  // namespace lamplighter
