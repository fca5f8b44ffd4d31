#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "lamplighter/error.h"
#include "pipeline/pixel_encoder.h"
#include "tests/error_of.h"

namespace lamplighter {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Manifest with_encoder() {
  Manifest manifest;
  manifest.name = "small";
  manifest.modules["image_encoder"] = {};
  manifest.decoder.codebook_size = 8;
  manifest.decoder.downsample = 16;
  return manifest;
}

Manifest with_grid(int rows, int columns) {
  Manifest manifest = with_encoder();
  Grid grid;
  grid.rows = rows;
  grid.columns = columns;
  manifest.grids.push_back(grid);
  return manifest;
}

// The complaint, "" where there is none.
std::string complaint(const Manifest& manifest, int width, int height, ExitCode code = ExitCode::input) {
  return error_of(code, [&] { check_sides(manifest, width, height, "a.png"); });
}

TEST(ImageSize, SidesAreThoseOfAGrid) {
  const Manifest manifest = with_grid(3, 4);
  EXPECT_EQ(complaint(manifest, 64, 48), "");
  EXPECT_THAT(complaint(manifest, 48, 64), StartsWith("a.png: got 4x3 (rows x columns), expected 3x4"));
  EXPECT_EQ(complaint(manifest, 65, 48), "a.png: got 65x48 pixels, expected sides that are multiples of 16");
  EXPECT_THAT(complaint(manifest, 0, 0), HasSubstr("multiples of 16"));
}

TEST(ImageSize, WithoutGridsAnyWholeTokensAreTaken) {
  EXPECT_EQ(complaint(with_encoder(), 16, 160), "");
  EXPECT_THAT(complaint(with_encoder(), 16 * 129, 16 * 128), HasSubstr("expected at most"));
}

TEST(ImageSize, WithoutAnEncoderThereIsAHint) {
  Manifest manifest = with_grid(3, 4);
  manifest.modules.clear();
  EXPECT_THAT(complaint(manifest, 64, 48, ExitCode::bundle), HasSubstr("export it again"));
}

}  // namespace
}  // namespace lamplighter
