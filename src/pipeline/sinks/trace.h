#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lamplighter/pipeline.h"

namespace lamplighter::cli {

// The cycles of one picture as JSON lines: picture, cycle (from 0), first (index of the first token
// committed), committed, accepted (drafted tokens), ms by stage.
std::string trace_lines(std::size_t picture, const Statistics& statistics);

// For every token how many its cycle committed. The prefill commits the first one alone.
std::vector<std::int64_t> committed_with(const Statistics& statistics, std::size_t tokens);

}  // namespace lamplighter::cli
