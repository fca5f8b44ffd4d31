#include "pipeline/region.h"

#include <algorithm>
#include <charconv>

#include "base/format.h"
#include "base/message.h"
#include "lamplighter/error.h"

namespace lamplighter {
namespace {

constexpr int kMostCandidates = 256;

// A rectangle of tokens; `right` and `bottom` are behind it.
struct Tokens {
  std::int64_t left = 0, top = 0, right = 0, bottom = 0;
};

Tokens tokens_of(const Grid& grid, const Region& region) {
  const std::int64_t width = grid.width / grid.columns, height = grid.height / grid.rows;  // of a token
  return {region.x / width, region.y / height, (region.x + region.width + width - 1) / width,
          (region.y + region.height + height - 1) / height};
}

bool is_inside(const Grid& grid, const Region& region) {
  return region.x >= 0 && region.y >= 0 && region.width >= 1 && region.height >= 1 &&
         std::int64_t{region.x} + region.width <= grid.width &&
         std::int64_t{region.y} + region.height <= grid.height;
}

void check_word(const char* key, const std::string& got, const char* first, const char* second) {
  if (got == first || got == second) return;
  throw Error(ExitCode::usage,
              std::string(key) + ": got " + quote(got) + ", expected " + first + " or " + second);
}

void check_candidates(const Region& region, const std::vector<std::int32_t>& kept) {
  if (region.candidates < 1 || region.candidates > kMostCandidates) {
    throw Error(ExitCode::usage, "candidates: got " + std::to_string(region.candidates) + ", expected 1.." +
                                     std::to_string(kMostCandidates));
  }
  const auto first = std::find(kept.begin(), kept.end(), -1);
  const bool is_scored = std::any_of(first, kept.end(), [](std::int32_t code) { return code >= 0; });
  if (region.candidates > 1 && !is_scored) {
    throw Error(ExitCode::usage, "candidates: got " + std::to_string(region.candidates) +
                                     ", expected 1: no token is kept behind the first new one of region " +
                                     region_text(region) + ", by which candidates could be compared");
  }
}

}  // namespace

Region parse_region(std::string_view text, const std::string& name) {
  Region region;
  const char *at = text.data(), *const end = at + text.size();
  bool is_good = true;
  for (int* const value : {&region.x, &region.y, &region.width, &region.height}) {
    const auto [behind, error] = std::from_chars(at, end, *value);
    const bool is_last = value == &region.height;
    is_good = is_good && error == std::errc() && (is_last ? behind == end : behind != end && *behind == ',');
    if (!is_good) break;
    at = behind + 1;
  }
  if (is_good) return region;
  throw Error(ExitCode::usage, name + ": got " + quote(std::string(text)) +
                                   ", expected X,Y,WIDTH,HEIGHT: four whole numbers of pixels");
}

std::string region_text(const Region& region) {
  return std::to_string(region.x) + "," + std::to_string(region.y) + "," + std::to_string(region.width) +
         "," + std::to_string(region.height);
}

Region whole_tokens(const Grid& grid, const Region& region) {
  if (!is_inside(grid, region)) {
    throw Error(ExitCode::usage, "region: got " + region_text(region) +
                                     ", expected X,Y,WIDTH,HEIGHT of a rectangle inside the " +
                                     sides(grid.width, grid.height) + " pixels of the image");
  }
  const Tokens tokens = tokens_of(grid, region);
  const int width = grid.width / grid.columns, height = grid.height / grid.rows;
  Region whole = region;
  whole.x = static_cast<int>(tokens.left) * width;
  whole.y = static_cast<int>(tokens.top) * height;
  whole.width = static_cast<int>(tokens.right - tokens.left) * width;
  whole.height = static_cast<int>(tokens.bottom - tokens.top) * height;
  return whole;
}

std::string note_whole_tokens(const std::string& name, const Region& given, const Region& whole) {
  const std::string before = region_text(given), tokens = region_text(whole);
  return before == tokens ? "" : name + ": got " + before + ", whole tokens are " + tokens;
}

std::vector<std::int32_t> kept_outside(const Grid& grid, const Region& region,
                                       const std::vector<std::int32_t>& codes) {
  check_word("behind", region.behind, "keep", "redraw");
  check_word("pick", region.pick, "best", "sample");
  const Tokens tokens = tokens_of(grid, whole_tokens(grid, region));
  if (static_cast<std::int64_t>(codes.size()) != grid.tokens()) {
    throw Error(ExitCode::usage, "region: got " + counted(codes.size(), "code") + " of the image, expected " +
                                     std::to_string(grid.tokens()) + ", all that images of " +
                                     sides(grid.width, grid.height) + " have");
  }
  std::vector<std::int32_t> kept = codes;
  const bool redraws = region.behind == "redraw";
  for (std::int64_t row = tokens.top; row < (redraws ? grid.rows : tokens.bottom); ++row) {
    const std::int64_t left = row < tokens.bottom ? tokens.left : 0;
    const std::int64_t right = redraws ? grid.columns : tokens.right;
    std::fill(kept.begin() + row * grid.columns + left, kept.begin() + row * grid.columns + right, -1);
  }
  if (std::all_of(kept.begin(), kept.end(), [](std::int32_t code) { return code < 0; })) {
    throw Error(ExitCode::usage, "region: got " + region_text(region) +
                                     ", expected a part of the image: nothing of it is kept");
  }
  check_candidates(region, kept);
  return kept;
}

std::int64_t generated_tokens(const Grid& grid, const Request& request, std::int64_t positions) {
  if (!request.region)
    return std::max<std::int64_t>(positions - static_cast<std::int64_t>(request.kept.size()), 0);
  const std::vector<std::int32_t> kept = kept_outside(grid, *request.region, request.kept);
  return std::count(kept.begin(), kept.begin() + std::min(positions, grid.tokens()), -1);
}

}  // namespace lamplighter
