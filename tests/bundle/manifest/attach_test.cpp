#include "bundle/manifest/attach.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/files.h"
#include "base/sha256.h"
#include "tests/error_of.h"

namespace lamplighter {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::string sum_of(std::string_view bytes) {
  Sha256 sum;
  sum.update(bytes);
  return sum.hex_digest();
}

class AttachFile : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(::testing::TempDir()) / (std::string("attach.") + test->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    write_file(at("target.pt"), "weights");
    write_file(at("manifest.json"), R"({"name": "toy", "files": {"target.pt": {"bytes": 7, "sha256": "00"}},
      "modules": {"target": {"file": "target.pt", "dtype": "float32"}}, "grids": []})");
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string at(const std::string& name) const { return (folder_ / name).string(); }
  Json manifest() const {
    return parse_json(read_file(at("manifest.json")), "manifest.json", ExitCode::bundle);
  }
  void attach(const std::string& name, const std::string& bytes, const std::string& pointer,
              const Json& entry) const {
    attach_file(folder_.string(), name, bytes, pointer, entry);
  }

  fs::path folder_;
};

TEST_F(AttachFile, AddsTheFileItsSumAndItsEntry) {
  attach("tree-cpu.json", "{}", "/trees/cpu", "tree-cpu.json");
  EXPECT_EQ(read_file(at("tree-cpu.json")), "{}");
  const Json json = manifest();
  EXPECT_EQ(json["trees"], Json({{"cpu", "tree-cpu.json"}}));
  EXPECT_EQ(json["files"]["tree-cpu.json"], Json({{"bytes", 2}, {"sha256", sum_of("{}")}}));
  EXPECT_EQ(json["files"]["target.pt"]["bytes"], 7);
}

TEST_F(AttachFile, KeepsTheOrderOfTheOtherEntries) {
  attach("n.safetensors", "rows", "/neighbours", {{"file", "n.safetensors"}});
  attach("n.safetensors", "more rows", "/neighbours", {{"file", "n.safetensors"}});
  std::vector<std::string> keys;
  const Json json = manifest();
  for (const auto& item : json.items()) keys.push_back(item.key());
  EXPECT_EQ(keys, (std::vector<std::string>{"name", "files", "modules", "grids", "neighbours"}));
  EXPECT_EQ(json["files"]["n.safetensors"]["sha256"], sum_of("more rows"));
  EXPECT_EQ(read_file(at("n.safetensors")), "more rows");
}

TEST_F(AttachFile, DropsTheFileThatOnlyTheOldEntryNamed) {
  attach("old.safetensors", "rows", "/neighbours", {{"file", "old.safetensors"}});
  attach("new.safetensors", "rows", "/neighbours", {{"file", "new.safetensors"}});
  EXPECT_FALSE(fs::exists(at("old.safetensors")));
  EXPECT_FALSE(manifest()["files"].contains("old.safetensors"));
  EXPECT_EQ(manifest()["neighbours"]["file"], "new.safetensors");
}

TEST_F(AttachFile, KeepsAnOldFileThatAnotherEntryNames) {
  attach("shared.json", "{}", "/trees/cpu", "shared.json");
  Json json = manifest();
  json["trees"]["cuda"] = "shared.json";
  write_file(at("manifest.json"), json.dump());
  attach("tree-cpu.json", "[]", "/trees/cpu", "tree-cpu.json");
  EXPECT_TRUE(fs::exists(at("shared.json")));
  EXPECT_TRUE(manifest()["files"].contains("shared.json"));
}

TEST_F(AttachFile, RefusesTheNameOfAnotherPart) {
  const std::string before = read_file(at("manifest.json"));
  EXPECT_THAT(error_of(ExitCode::bundle, [&] { attach("target.pt", "tree", "/trees/cpu", "target.pt"); }),
              HasSubstr("target.pt is already used for something else"));
  EXPECT_EQ(read_file(at("target.pt")), "weights");
  EXPECT_EQ(read_file(at("manifest.json")), before);
}

// A replacement that fails half-way must not leave a manifest that describes the file wrongly.
TEST_F(AttachFile, LeavesAWholeBundleWhenTheFileCannotBeWritten) {
  attach("tree-cpu.json", "{}", "/trees/cpu", "tree-cpu.json");
  fs::remove(at("tree-cpu.json"));
  fs::create_directory(at("tree-cpu.json"));
  EXPECT_THROW(attach("tree-cpu.json", "[[0]]", "/trees/cpu", "tree-cpu.json"), Error);
  EXPECT_FALSE(manifest()["trees"].contains("cpu"));
  EXPECT_FALSE(manifest()["files"].contains("tree-cpu.json"));
}

TEST_F(AttachFile, SaysWhatIsWrongWithTheManifest) {
  write_file(at("manifest.json"), "[1]");
  EXPECT_THROW(attach("a", "b", "/neighbours", {{"file", "a"}}), Error);
}

}  // namespace
}  // namespace lamplighter
