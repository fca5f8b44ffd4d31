#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "decode/report.h"
#include "lamplighter/bundle.h"
#include "lamplighter/options.h"

namespace lamplighter {

struct DecodeRequest;
struct Method;
struct Models;
struct Prompts;

// Wall-clock time is what a user waits for. Processor time (of all threads) excludes other programs on a busy
// machine, but does not measure GPU work.
enum class Clock { wall, processor };
std::vector<std::string> clock_names();
// Throws Error(ExitCode::usage).
Clock clock_from(const std::string& name);

// How to measure the cost of cycles.
struct CycleOptions {
  Clock clock = Clock::wall;
  int rounds = 12;                                           // a round runs every method once
  int block = 4;                                             // cycles of a method per round
  double most_ms = std::numeric_limits<double>::infinity();  // no round but the first begins after so long
  // Accepted drafts of each cycle, repeated in turn. Acceptance is scripted: the path follows first children.
  std::vector<std::int64_t> accepted{1};
  // Time every stage. On a GPU this synchronizes after each stage. Otherwise cycles are queued as in
  // generation, and with `graph` replayed as a captured CUDA graph.
  bool stages = true;
  bool graph = true;
  LogCallback note;  // receives a line when capture fails
};

// Integers whose mean is as close to `mean` as possible: 1.5 gives 1, 2, 1, 2, ...
std::vector<std::int64_t> accepted_around(double mean);

// Mean times per cycle, one entry per round.
using CycleRounds = std::vector<StageTimes>;
double total(const StageTimes& times);
StageTimes median_stages(const CycleRounds& rounds);  // median of each stage separately

struct MeasuredCycles {
  std::vector<CycleRounds> rounds;    // by method
  std::vector<std::int64_t> kernels;  // kernels of a captured cycle, by method; 0: not captured
};

// Cache slots of the first half of an image's rows, row ends included: where cycles are measured.
std::int64_t rows_to_middle(const Grid& grid);

// Measures the cycles of all methods in the middle of images, one image per request. Methods take turns block
// by block in rotating order, always from the same position; each runs one unmeasured block first. The cache
// of the first half is zero, because times do not depend on its content. Return false from `on_round` to stop
// (Error(ExitCode::interrupted)).
MeasuredCycles measure_cycles(const Models& models, const std::vector<Method>& methods,
                              const Prompts& prompts, const std::vector<DecodeRequest>& requests,
                              const Grid& grid, const CycleOptions& options,
                              const std::function<bool(int round)>& on_round = {});

// Memory bandwidth of the CPU in bytes per millisecond: the best of several passes over more memory than
// caches hold, with Torch's threads.
double streaming_rate(Clock clock);

}  // namespace lamplighter
