#include "bench/candidates.h"

#include <algorithm>
#include <utility>

#include "base/message.h"
#include "bench/methods.h"
#include "lamplighter/error.h"

namespace lamplighter {
namespace {

constexpr const char* kRowsAlone = "zipar";

// Includes fans with few candidates, which pay off first.
std::vector<std::string> windows_of(TreeKind kind, int max_nodes) {
  std::vector<std::string> windows;
  for (int nodes = 1; nodes <= max_nodes; ++nodes) {
    windows.push_back("chain-" + std::to_string(nodes));
    if (kind != TreeKind::multi_candidate) continue;
    // `more`: additional nodes over a chain of the same length.
    for (const auto& [fan, more] : {std::pair{"fan-2-1-", 1}, {"fan-3-1-", 2}, {"fan-2-2-", 4}}) {
      if (nodes - more >= 2) windows.push_back(fan + std::to_string(nodes - more));
    }
  }
  return windows;
}

std::string at_distance(const std::string& method, std::int64_t distance) {
  return method + ":ahead=" + std::to_string(distance);
}

std::vector<std::string> rows_with_windows(const std::string& method, const CandidateBounds& bounds) {
  const std::optional<std::int64_t> own = parse_method(method).ahead, fixed = own ? own : bounds.ahead;
  if (own && bounds.ahead)
    throw Error(ExitCode::usage, "ahead: got " + std::to_string(*bounds.ahead) + " and " +
                                     std::to_string(*own) + " in " + quote(method) + ", expected one");
  std::vector<std::string> names;
  for (const std::int64_t distance : fixed ? std::vector{*fixed} : row_distances(bounds.columns)) {
    names.push_back(at_distance(kRowsAlone, distance));
    for (const std::string& window : windows_of(TreeKind::parallel_windows, bounds.max_nodes))
      names.push_back((own ? method : at_distance(method, distance)) + ":tree=" + window);
  }
  return names;
}

}  // namespace

std::vector<std::int64_t> row_distances(std::int64_t columns, std::int64_t least) {
  const std::int64_t half = std::max<std::int64_t>(1, columns / 2);
  if (least < 1 || least > half)
    throw Error(ExitCode::usage, "ahead: got " + std::to_string(least) + ", expected 1 to " +
                                     std::to_string(half) + ", half of a row");
  std::vector<std::int64_t> distances{least};
  for (std::int64_t distance = 1; distance < half; distance *= 2) {
    if (distance > least) distances.push_back(distance);
  }
  if (half > least) distances.push_back(half);
  return distances;
}

std::vector<BenchMethod> tuning_candidates(const std::string& method, const CandidateBounds& bounds) {
  const MethodOptions options = parse_method(method);
  const TreeKind kind = find_method(options.method).tree;
  std::vector<std::string> names;
  if (kind == TreeKind::parallel_windows) {
    names = rows_with_windows(method, bounds);
  } else if (kind == TreeKind::parallel_rows) {
    if (options.ahead)
      throw Error(ExitCode::usage,
                  "method: got ahead in " + quote(method) +
                      ", which is what this command searches; --ahead N is the least distance to try");
    for (const std::int64_t distance : row_distances(bounds.columns, bounds.ahead.value_or(1)))
      names.push_back(at_distance(method, distance));
  } else {
    for (const std::string& window : windows_of(kind, bounds.max_nodes))
      names.push_back(method + ":tree=" + window);
  }
  return bench_methods(names);
}

}  // namespace lamplighter
