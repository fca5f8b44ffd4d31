#include "trace.h"

#include <algorithm>

#include "base/json.h"

namespace lamplighter::cli {

std::string trace_lines(std::size_t picture, const Statistics& statistics) {
  std::string lines;
  std::size_t number = 0;
  for (const Cycle& cycle : statistics.cycles) {
    const Json line{{"picture", picture},
                    {"cycle", number++},
                    {"first", cycle.first},
                    {"committed", cycle.committed},
                    {"accepted", cycle.accepted},
                    {"ms",
                     {{"cycle", cycle.cycle_ms},
                      {"draft", cycle.draft_ms},
                      {"verify", cycle.verify_ms},
                      {"accept", cycle.accept_ms},
                      {"commit", cycle.commit_ms}}}};
    lines += line.dump() + "\n";
  }
  return lines;
}

std::vector<std::int64_t> committed_with(const Statistics& statistics, std::size_t tokens) {
  std::vector<std::int64_t> counts(tokens, 1);
  for (const Cycle& cycle : statistics.cycles) {
    const auto begin = std::min(static_cast<std::size_t>(cycle.first), tokens);
    const auto end = std::min(begin + static_cast<std::size_t>(cycle.committed), tokens);
    std::fill(counts.begin() + static_cast<std::ptrdiff_t>(begin),
              counts.begin() + static_cast<std::ptrdiff_t>(end), cycle.committed);
  }
  return counts;
}

}  // namespace lamplighter::cli
