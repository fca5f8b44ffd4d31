#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "bundle/target.h"
#include "lamplighter/options.h"

// From prompt rows to image tokens. I = images, S = sequences: I, or 2 I interleaved pairs (conditional, then
// unconditional row of each image) when any image is guided.
namespace lamplighter {

// Embedded prompts, valid rows first.
struct Prompts {
  at::Tensor rows;   // [S, T, H]
  at::Tensor valid;  // int64 [S] on the CPU: rows that belong to the prompt, 1 .. T
};

// What to draw: one entry per image.
struct DecodeRequest {
  SamplingOptions sampling;
  std::uint64_t seed = 0;
};

// Images that are guided at all run as pairs.
bool is_guided(const std::vector<DecodeRequest>& requests);

// Everything a cycle reads and writes; tensors live on the target's device.
struct DecodeState {
  // fixed for the run
  at::Tensor seeds;            // int64 [I]
  at::Tensor guidance;         // fp32 [I]
  at::Tensor interval;         // int64 [I], number of guided tokens, or the image's token count
  at::Tensor temperature;      // fp32 [I]
  at::Tensor top_k;            // int64 [I]
  at::Tensor top_p;            // fp32 [I]
  bool guided = false;         // sequences are pairs
  bool partly_guided = false;  // guidance ends before the last token for some image
  std::int64_t total = 0;      // tokens per image
  // advanced by commit
  at::Tensor cache;                // [layers, 2, S, kv_heads, slots, head_dim]
  at::Tensor lengths;              // int64 [S], committed rows of the cache
  at::Tensor positions;            // int64 [S, 1], position of the last committed token
  at::Tensor steps;                // int64 [I], tokens committed: the counter of the next draw
  at::Tensor codes;                // int64 [I, total], codebook indices
  std::int64_t committed = 0;      // tokens per image so far
  std::int64_t target_passes = 0;  // prefill included

  bool finished() const { return committed == total; }
};

// The parts of a cycle, in order of use.
DecodeState make_state(const Target& target, const Prompts& prompts,
                       const std::vector<DecodeRequest>& requests, const Grid& grid);
// Runs the prompts through the target: hidden rows [S, R, H], R = the longest prompt; rows past a prompt's
// end are padding.
at::Tensor prefill(const Target& target, const Prompts& prompts, DecodeState& state);
// Of these the last valid row of each sequence [S, 1, H]: it decides the first token.
at::Tensor last_rows(const at::Tensor& hidden, const Prompts& prompts);
// Runs the last committed token through the target: hidden row [S, 1, H] that decides the next one.
at::Tensor verify(const Target& target, DecodeState& state);
// Draws the next token of every image from the guided, filtered distribution: codebook indices int64 [I, 1].
at::Tensor accept(const Target& target, const DecodeState& state, const at::Tensor& hidden);
void commit(DecodeState& state, const at::Tensor& codes);

// Called after every cycle; false stops the run with Error(ExitCode::interrupted).
using OnCycle = std::function<bool(const DecodeState&)>;

// Codebook indices int64 [I, rows * columns] on the CPU, raster order.
at::Tensor decode(const Target& target, const Prompts& prompts, const std::vector<DecodeRequest>& requests,
                  const Grid& grid, DecodeState& state, const OnCycle& on_cycle = {});

}  // namespace lamplighter
