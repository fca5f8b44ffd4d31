#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lamplighter/error.h"

// Tables of neighbouring codes. The rules that borrow from them run in kernels/verify.
namespace lamplighter {

// The nearest codes of every code by their vectors, nearest first, without the code itself.
struct NeighbourTable {
  std::int64_t codes = 0;
  std::int64_t width = 0;
  std::vector<std::uint16_t> ids;  // [codes, width]

  const std::uint16_t* row(std::int64_t code) const { return ids.data() + code * width; }
};

// l2: Euclidean distance of the vectors as stored; cosine: of the vectors divided by their length (at least
// 1e-12).
enum class Metric { l2, cosine };
std::vector<std::string> metric_names();
Metric metric_from(const std::string& name);  // throws Error(usage)

// Called after every block of codes with the number done.
using NeighbourProgress = std::function<void(std::int64_t done, std::int64_t codes)>;

// The k nearest codes of codebook [codes, dimension], by squared distances in double precision; distances
// that agree to 1e-12 are ties, which the smaller id wins. Throws Error(usage) unless 1 <= k < codes <=
// 65536, and Error(bundle) for values that are not finite.
NeighbourTable nearest_neighbours(const std::vector<float>& codebook, std::int64_t dimension, std::int64_t k,
                                  Metric metric, const NeighbourProgress& progress = nullptr);

// A table in LANTERN's own format: .npy, version 1 to 3, little-endian uint16, C order, shape [codes, width].
// Reads the first `k` columns (0: all). Throws Error(code) for other files, for ids that are no code, and for
// rows that hold an id twice or their own.
NeighbourTable read_npy_neighbours(const std::string& path, std::int64_t k = 0,
                                   ExitCode code = ExitCode::input);

// Throws Error(code) naming the row unless every row holds distinct codes other than its own.
void check_neighbours(const NeighbourTable& table, const std::string& where, ExitCode code);

}  // namespace lamplighter
