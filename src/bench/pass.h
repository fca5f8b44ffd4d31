#pragma once

#include <string>
#include <vector>

#include "bench/report/report.h"
#include "lamplighter/bundle.h"

// Explains from measurements why a method is as fast as it is.
namespace lamplighter {

// The target and the shape of its passes.
struct PassFacts {
  double weights = 0;     // weights that a pass reads
  double bytes_each = 4;  // bytes per weight in use
  bool guided = false;    // with classifier-free guidance, which scores two sequences
  Grid grid = {};         // of the image
};
// Facts of a bundle and a run; `dtype` as --dtype names it.
PassFacts pass_facts(const Manifest& manifest, const std::string& dtype, const Grid& grid, bool guided);

// Sets `pass` and `verdict` of all reports from the resolved methods. Reads tree files.
void add_pass_costs(std::vector<BenchReport>& reports, const std::vector<BenchMethod>& resolved,
                    const PassFacts& facts);

// Explains in one sentence (without a full stop) why speculation does not pay off; empty when it does: when
// the speed-up is not below 1 beyond its interval and at least half of S becomes speed-up. The sentence names
// the part of a cycle that costs most beyond an ar step, or low acceptance.
std::string verdict(const BenchReport& report, const BenchReport& baseline);

}  // namespace lamplighter
