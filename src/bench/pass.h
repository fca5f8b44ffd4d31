#pragma once

#include <string>
#include <vector>

#include "bench/report/report.h"
#include "lamplighter/bundle.h"

// Why a method is as fast as it is, from what was measured.
namespace lamplighter {

// The target, and what its passes are over.
struct PassFacts {
  double weights = 0;     // numbers that a pass reads
  double bytes_each = 4;  // of one of them as it is used
  bool guided = false;    // both halves of a pair are scored
  Grid grid = {};         // of the pictures
};
// Of a bundle; the grid, `guided` and the dtype, as --dtype names it, are those of the run.
PassFacts pass_facts(const Manifest& manifest, const std::string& dtype, const Grid& grid, bool guided);

// Fills in `pass` and `verdict` of all reports from the methods as resolved; reads tree files.
void add_pass_costs(std::vector<BenchReport>& reports, const std::vector<BenchMethod>& resolved,
                    const PassFacts& facts);

// Why speculation does not pay, in one sentence without a full stop; empty where it does: the interval of the
// speed-up lies above 1 or holds it, and at least half of S is kept as time. Of what a cycle costs more than
// a step of ar, and of what it accepts, the sentence names the part that eats most of the gain.
std::string verdict(const BenchReport& report, const BenchReport& baseline);

}  // namespace lamplighter
