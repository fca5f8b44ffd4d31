#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/bundle/manifest/toy_manifest.h"
#include "tests/error_of.h"

namespace lamplighter {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

TEST_F(ManifestTest, FilesStayInsideTheBundleAndAreListed) {
  EXPECT_THAT(error([](Json& j) { j["modules"]["target"]["file"] = "../target.pt"; }),
              HasSubstr("inside the bundle"));
  EXPECT_THAT(error([](Json& j) { j["modules"]["target"]["file"] = "/target.pt"; }),
              HasSubstr("inside the bundle"));
  EXPECT_THAT(error([](Json& j) { j["modules"]["target"]["file"] = "other.pt"; }),
              HasSubstr("\"files\" lists"));
  for (const char* name : {"../../etc/hostname", "/etc/hostname", "folder/file", "..", ""}) {
    EXPECT_THAT(error([&](Json& j) { j["files"][name] = j["files"]["target.pt"]; }),
                HasSubstr(std::string("files.") + name + ": no plain name"));
  }
}

TEST_F(ManifestTest, FilesAreNoLinksOutOfTheBundle) {
  const Manifest manifest = read();
  write("decoder.pt", "abcdef");
  fs::create_symlink("decoder.pt", directory_ / "target.pt");
  verify_files(manifest, false);
  const fs::path outside = directory_.string() + "_outside";
  std::ofstream(outside, std::ios::binary) << "abcdef";
  fs::remove(directory_ / "target.pt");
  fs::create_symlink(outside, directory_ / "target.pt");
  EXPECT_THAT(error_of(ExitCode::bundle, [&] { verify_files(manifest, false); }),
              HasSubstr("target.pt: it is a link out of the bundle's folder"));
  fs::remove(outside);
}

TEST_F(ManifestTest, VerifyFindsMissingShortAndChangedFiles) {
  const Manifest manifest = read([](Json& j) {
    // SHA-256 of "abcdef"
    for (const char* name : {"target.pt", "decoder.pt"}) {
      j["files"][name]["sha256"] = "bef57ec7f53a6d40beb640a780a639c83bc29ac8a9816f1fc6c5c6dcd93c4721";
    }
  });
  const auto verify = [&](bool checksums) -> std::string {
    return error_of(ExitCode::bundle, [&] { verify_files(manifest, checksums); });
  };
  write("decoder.pt", "abcdef");
  EXPECT_THAT(verify(true), HasSubstr("target.pt: No such file"));
  write("target.pt", "abcde");
  EXPECT_THAT(verify(false), HasSubstr("got 5 bytes, expected 6"));
  write("target.pt", "abcdeg");
  EXPECT_EQ(verify(false), "");
  EXPECT_THAT(verify(true), HasSubstr("SHA-256"));
  write("target.pt", "abcdef");
  EXPECT_EQ(verify(true), "");
}

}  // namespace
}  // namespace lamplighter
