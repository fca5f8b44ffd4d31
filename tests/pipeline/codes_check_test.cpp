#include "pipeline/output/codes_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "lamplighter/error.h"
#include "tests/error_of.h"

namespace lamplighter {
namespace {

using testing::HasSubstr;

Manifest two_grids() {
  Manifest manifest;
  manifest.name = "small";
  manifest.decoder.codebook_size = 8;
  manifest.decoder.downsample = 16;
  for (const auto& [rows, columns] : {std::pair{4, 4}, {2, 6}}) {
    Grid grid;
    grid.rows = rows;
    grid.columns = columns;
    manifest.grids.push_back(grid);
  }
  return manifest;
}

Codes codes_of(int rows, int columns, std::int32_t id = 0) {
  return {rows, columns,
          std::vector<std::int32_t>(static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns), id)};
}

// The complaint, "" where there is none.
std::string complaint(const Manifest& manifest, const Codes& codes, CodeRows rows) {
  return error_of(ExitCode::input, [&] { check_codes(manifest, codes, "here", rows); });
}

TEST(CodesCheck, WholeImagesHaveGridsOfTheBundle) {
  const Manifest manifest = two_grids();
  EXPECT_EQ(complaint(manifest, codes_of(4, 4), CodeRows::all), "");
  EXPECT_EQ(complaint(manifest, codes_of(2, 6), CodeRows::all), "");
  EXPECT_EQ(complaint(manifest, codes_of(3, 4), CodeRows::all),
            "here: got 3x4 (rows x columns), expected 4x4, 2x6, as bundle small generates");
  EXPECT_NE(complaint(manifest, codes_of(6, 2), CodeRows::all), "");
}

TEST(CodesCheck, ImagesThatGrowHaveTheirFirstRows) {
  const Manifest manifest = two_grids();
  EXPECT_EQ(complaint(manifest, codes_of(1, 4), CodeRows::first), "");
  EXPECT_EQ(complaint(manifest, codes_of(4, 4), CodeRows::first), "");
  EXPECT_THAT(complaint(manifest, codes_of(5, 4), CodeRows::first), HasSubstr("first rows"));
  EXPECT_NE(complaint(manifest, codes_of(3, 6), CodeRows::first), "");
  EXPECT_NE(complaint(manifest, codes_of(2, 5), CodeRows::first), "");
}

TEST(CodesCheck, IdsAreThoseOfTheCodebook) {
  const Manifest manifest = two_grids();
  EXPECT_EQ(complaint(manifest, codes_of(4, 4, 8), CodeRows::all), "here: got id 8, expected 0..7");
  EXPECT_EQ(complaint(manifest, codes_of(4, 4, -1), CodeRows::all), "here: got id -1, expected 0..7");
}

TEST(CodesCheck, DecodersAloneTakeWhatAMachineBears) {
  Manifest manifest = two_grids();
  manifest.grids.clear();
  EXPECT_EQ(complaint(manifest, codes_of(128, 128), CodeRows::all), "");
  EXPECT_EQ(complaint(manifest, codes_of(1, 1024), CodeRows::all), "");
  EXPECT_THAT(complaint(manifest, codes_of(1, 1025), CodeRows::all), HasSubstr("sides of 1024"));
  EXPECT_THAT(complaint(manifest, codes_of(129, 128), CodeRows::all), HasSubstr("at most 16384 codes"));
}

}  // namespace
}  // namespace lamplighter
