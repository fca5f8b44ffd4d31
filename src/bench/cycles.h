#pragma once

#include <cstdint>
#include <functional>
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

// Wall-clock time is what a user waits for. Processor time (of all threads) leaves out what other programs
// took, on a machine that is not idle; it means nothing for work on a GPU.
enum class Clock { wall, processor };
// From "wall" or "processor". Throws Error(ExitCode::usage).
Clock clock_from(const std::string& name);

// How the cost of cycles is measured.
struct CycleOptions {
  Clock clock = Clock::wall;
  int rounds = 12;  // each runs every method once
  int block = 4;    // cycles of a method in a round
  // Drafted tokens that are accepted, cycle by cycle and over again, along first children: how many a cycle
  // accepts is scripted, never measured.
  std::vector<std::int64_t> accepted{1};
  // Time every stage by itself. On a device this waits for it after each; without, cycles are queued one
  // after the other, as when pictures are drawn, and with `graph` they are replayed as a captured graph.
  bool stages = true;
  bool graph = true;
  NoteCallback note;  // told when cycles cannot be captured
};

// Numbers whose mean comes as close to `mean` as whole numbers can: 1.5 gives 1, 2, 1, 2, ...
std::vector<std::int64_t> accepted_around(double mean);

// Means over the cycles of one round.
using CycleRounds = std::vector<StageTimes>;
double total(const StageTimes& times);
StageTimes median_stages(const CycleRounds& rounds);  // of every stage by itself

struct MeasuredCycles {
  std::vector<CycleRounds> rounds;    // of each method
  std::vector<std::int64_t> kernels;  // of a captured cycle of each; 0: none was captured
};

// Rows of a cache that half of the rows of a picture take, with their row ends: where cycles are measured.
std::int64_t rows_to_middle(const Grid& grid);

// Runs the methods in turn in the middle of pictures drawn together, one per request, block by block, the
// order rotated, always from the same place, and gives for each its rounds. The rows of the picture's first
// half are zeros: their content costs nothing. Before the rounds every method runs one block that is not
// measured. `on_round` stops the run by returning false (Error(ExitCode::interrupted)).
MeasuredCycles measure_cycles(const Models& models, const std::vector<Method>& methods,
                              const Prompts& prompts, const std::vector<DecodeRequest>& requests,
                              const Grid& grid, const CycleOptions& options,
                              const std::function<bool(int round)>& on_round = {});

// Bytes per millisecond at which one pass over memory larger than any cache runs here, with the threads that
// Torch has; the best of several. On the CPU.
double streaming_rate(Clock clock);

}  // namespace lamplighter
