#include "bundle/modules/module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "lamplighter/error.h"
#include "tests/error_of.h"

namespace lamplighter {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;

// The error message for an archive with this content.
std::string load(const std::string& content) {
  const std::string directory = ::testing::TempDir();
  const std::filesystem::path file = std::filesystem::path(directory) / "lamplighter_module_test.pt";
  std::ofstream(file, std::ios::binary) << content;
  const std::string message = error_of(ExitCode::bundle, [&] {
    const Module module(directory, {file.filename().string(), "float32"}, "target", {"forward"}, {});
  });
  std::filesystem::remove(file);
  return message;
}

TEST(Module, OtherFilesGiveAPlainError) {
  EXPECT_THAT(load("<!DOCTYPE html><html></html>"), HasSubstr("HTML page"));
  EXPECT_THAT(load("version https://git-lfs"), HasSubstr("not a zip archive"));
  EXPECT_THAT(load(""), HasSubstr("not a zip archive"));
  EXPECT_THAT(load("PK\x03\x04 and then nothing that a zip archive has"),
              AllOf(HasSubstr("got a damaged archive, expected the TorchScript archive that was exported"),
                    EndsWith("copy the file or export the bundle again")));
}

}  // namespace
}  // namespace lamplighter
