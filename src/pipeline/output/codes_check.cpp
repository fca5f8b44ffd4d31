#include "pipeline/output/codes_check.h"

#include <algorithm>
#include <cstddef>

#include "base/format.h"
#include "base/limits.h"
#include "lamplighter/error.h"

namespace lamplighter {
namespace {

[[noreturn]] void refuse(const std::string& where, const std::string& got, const std::string& expected) {
  throw Error(ExitCode::input, where + ": got " + got + ", expected " + expected);
}

void check_listed(const Manifest& manifest, const Codes& codes, const std::string& where, CodeRows rows) {
  std::string known;
  for (const Grid& grid : manifest.grids) {
    const bool fits = rows == CodeRows::all ? codes.rows == grid.rows : codes.rows <= grid.rows;
    if (fits && codes.columns == grid.columns) return;
    known += (known.empty() ? "" : ", ") + sides(grid.rows, grid.columns);
  }
  refuse(where, sides(codes.rows, codes.columns) + " (rows x columns)",
         known + (rows == CodeRows::first ? " or its first rows" : "") + ", as bundle " + manifest.name +
             " generates");
}

void check_bounds(const Manifest& manifest, const Codes& codes, const std::string& where) {
  const std::int64_t side = std::max(codes.rows, codes.columns);
  if (static_cast<std::int64_t>(codes.ids.size()) <= limits::kCodes &&
      side * manifest.decoder.downsample <= limits::kImageSide)
    return;
  refuse(where, sides(codes.rows, codes.columns) + " (rows x columns)",
         "at most " + std::to_string(limits::kCodes) + " codes, and sides of " +
             std::to_string(limits::kImageSide / manifest.decoder.downsample));
}

}  // namespace

void check_codes(const Manifest& manifest, const Codes& codes, const std::string& where, CodeRows rows) {
  if (manifest.is_continuous())
    refuse(where, "codes", "none: the tokens of " + manifest.name + " are continuous");
  if (codes.rows <= 0 || codes.columns <= 0 ||
      codes.ids.size() != static_cast<std::size_t>(codes.rows) * static_cast<std::size_t>(codes.columns)) {
    throw Error(ExitCode::input, where + ": got " + counted(codes.ids.size(), "id") + " for a grid of " +
                                     std::to_string(codes.rows) + " x " + std::to_string(codes.columns));
  }
  const std::int64_t count = manifest.decoder.codebook_size;
  for (const std::int32_t id : codes.ids) {
    if (id < 0 || id >= count) refuse(where, "id " + std::to_string(id), "0.." + std::to_string(count - 1));
  }
  if (manifest.grids.empty()) return check_bounds(manifest, codes, where);
  check_listed(manifest, codes, where, rows);
}

}  // namespace lamplighter
