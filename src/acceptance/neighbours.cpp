#include "acceptance/neighbours.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/message.h"
#include "base/suggestion.h"

namespace lamplighter {
namespace {

constexpr std::int64_t kMostCodes = 65536;  // ids are 16 bits wide
constexpr double kTie = 1e-12;
constexpr std::int64_t kRows = 16;   // codes whose distances are kept at a time
constexpr std::int64_t kLanes = 64;  // codes measured side by side

std::size_t at(std::int64_t index) {
  return static_cast<std::size_t>(index);
}

// Vectors in blocks of kLanes codes, [block, dimension, lane], so that the inner loop runs over codes.
struct Blocks {
  std::int64_t codes = 0, dimension = 0;
  std::vector<double> values;

  const double* block(std::int64_t index) const { return values.data() + index * dimension * kLanes; }
  double value(std::int64_t code, std::int64_t i) const {
    return block(code / kLanes)[i * kLanes + code % kLanes];
  }
};

Blocks make_blocks(const std::vector<float>& codebook, std::int64_t dimension, Metric metric) {
  Blocks blocks;
  blocks.codes = static_cast<std::int64_t>(codebook.size()) / dimension;
  blocks.dimension = dimension;
  blocks.values.resize(at((blocks.codes + kLanes - 1) / kLanes * kLanes * dimension));
  for (std::int64_t code = 0; code < blocks.codes; ++code) {
    const float* vector = codebook.data() + code * dimension;
    double square = 0;
    for (std::int64_t i = 0; i < dimension; ++i) square += double{vector[i]} * vector[i];
    if (!std::isfinite(square)) {
      throw Error(ExitCode::bundle,
                  "codebook: the vector of code " + std::to_string(code) + " is not finite");
    }
    const double length = metric == Metric::cosine ? std::max(std::sqrt(square), 1e-12) : 1.0;
    double* out = blocks.values.data() + (code / kLanes * dimension) * kLanes + code % kLanes;
    for (std::int64_t i = 0; i < dimension; ++i) out[i * kLanes] = vector[i] / length;
  }
  return blocks;
}

// Squared distances of codes first .. first + count - 1 to all codes, [kRows, padded codes].
void measure(const Blocks& blocks, std::int64_t first, std::int64_t count, std::vector<double>& distances) {
  const std::int64_t padded = static_cast<std::int64_t>(distances.size()) / kRows;
  for (std::int64_t block = 0; block < padded / kLanes; ++block) {
    const double* vectors = blocks.block(block);
    for (std::int64_t row = 0; row < count; ++row) {
      std::array<double, kLanes> sums{};
      for (std::int64_t i = 0; i < blocks.dimension; ++i) {
        const double own = blocks.value(first + row, i);
        const double* lanes = vectors + i * kLanes;
        for (std::size_t lane = 0; lane < at(kLanes); ++lane) {
          sums[lane] += (own - lanes[lane]) * (own - lanes[lane]);
        }
      }
      std::copy(sums.begin(), sums.end(), distances.begin() + row * padded + block * kLanes);
    }
  }
}

// The k nearest of (squared distance, code) by distance, ties by code.
void select(std::vector<std::pair<double, std::int64_t>>& all, std::int64_t k, std::uint16_t* out) {
  const auto kth = all.begin() + (k - 1);
  std::nth_element(all.begin(), kth, all.end());
  // Codes tied with the k-th may stand behind it.
  const double limit = kth->first + kTie;
  const auto end =
      std::partition(kth + 1, all.end(), [&](const auto& entry) { return entry.first <= limit; });
  std::sort(all.begin(), end);
  for (auto run = all.begin(); run != end;) {
    auto next = run + 1;
    while (next != end && next->first - (next - 1)->first <= kTie) ++next;
    std::sort(run, next, [](const auto& a, const auto& b) { return a.second < b.second; });
    run = next;
  }
  for (std::int64_t i = 0; i < k; ++i) out[i] = static_cast<std::uint16_t>(all[at(i)].second);
}

}  // namespace

std::vector<std::string> metric_names() {
  return {"l2", "cosine"};
}

Metric metric_from(const std::string& name) {
  const std::vector<std::string> names = metric_names();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<Metric>(found - names.begin());
  throw Error(ExitCode::usage, "metric: got " + quote(name) + ", expected " + list_of(names));
}

NeighbourTable nearest_neighbours(const std::vector<float>& codebook, std::int64_t dimension, std::int64_t k,
                                  Metric metric, const NeighbourProgress& progress) {
  const std::int64_t codes = dimension > 0 ? static_cast<std::int64_t>(codebook.size()) / dimension : 0;
  if (codes * dimension != static_cast<std::int64_t>(codebook.size()) || codes > kMostCodes) {
    throw Error(ExitCode::usage, "codebook: got " + std::to_string(codebook.size()) +
                                     " values, expected at most 65536 vectors of " +
                                     std::to_string(dimension));
  }
  if (codes < 2) {
    throw Error(ExitCode::usage,
                "codebook: got " + std::to_string(codes) + " codes, neighbours are of two codes or more");
  }
  if (k < 1 || k >= codes) {
    throw Error(ExitCode::usage, "neighbours: got k = " + std::to_string(k) + ", expected 1 to " +
                                     std::to_string(codes - 1) + " for a codebook of " +
                                     std::to_string(codes));
  }
  const Blocks blocks = make_blocks(codebook, dimension, metric);
  NeighbourTable table{codes, k, std::vector<std::uint16_t>(at(codes * k))};
  const std::int64_t padded = (codes + kLanes - 1) / kLanes * kLanes;
  std::vector<double> distances(at(kRows * padded));
  std::vector<std::pair<double, std::int64_t>> others;
  for (std::int64_t first = 0; first < codes; first += kRows) {
    const std::int64_t count = std::min(kRows, codes - first);
    measure(blocks, first, count, distances);
    for (std::int64_t row = 0; row < count; ++row) {
      others.clear();
      for (std::int64_t code = 0; code < codes; ++code) {
        if (code != first + row) others.emplace_back(distances[at(row * padded + code)], code);
      }
      select(others, k, table.ids.data() + (first + row) * k);
    }
    if (progress) progress(first + count, codes);
  }
  return table;
}

void check_neighbours(const NeighbourTable& table, const std::string& where, ExitCode code) {
  std::vector<std::int64_t> seen_in(at(table.codes), -1);
  for (std::int64_t row = 0; row < table.codes; ++row) {
    const auto fail = [&](std::int64_t column, const std::string& why) {
      std::string message = where;
      message += ": row " + std::to_string(row) + ", column " + std::to_string(column);
      message += ": got " + std::to_string(table.row(row)[column]) + ", " + why;
      throw Error(code, message);
    };
    for (std::int64_t column = 0; column < table.width; ++column) {
      const std::int64_t id = table.row(row)[column];
      if (id >= table.codes) fail(column, "expected codes below " + std::to_string(table.codes));
      if (id == row) fail(column, "expected other codes than the row's own");
      if (seen_in[at(id)] == row) fail(column, "expected every code once in a row");
      seen_in[at(id)] = row;
    }
  }
}

}  // namespace lamplighter
