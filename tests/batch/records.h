#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/durable.h"
#include "base/files.h"
#include "batch/record.h"

namespace lamplighter {

// The record of a generated image.
inline Record generated_record(std::size_t index, std::size_t repeat = 0) {
  Record record;
  record.index = index;
  record.repeat = repeat;
  record.caption = "caption " + std::to_string(index);
  record.seed = 42 + index;
  record.file = "images/" + std::to_string(index) + "_" + std::to_string(repeat) + ".png";
  record.sha256 = std::string(64, 'a');
  record.bytes = 3;
  record.width = record.height = 16;
  record.rows = record.columns = 2;
  record.method = "plain";
  record.tokens = 4;
  record.target_passes = 3;
  record.committed = {1, 2};
  return record;
}

inline Record failed_record(std::size_t index, std::size_t repeat = 0) {
  Record record;
  record.index = index;
  record.repeat = repeat;
  record.caption = "caption " + std::to_string(index);
  record.error = "no memory";
  return record;
}

// A temporary folder per test.
class FolderTest : public testing::Test {
 protected:
  FolderTest()
      : folder_(testing::TempDir() + testing::UnitTest::GetInstance()->current_test_info()->name() + "." +
                std::to_string(::getpid())) {
    std::filesystem::create_directories(folder_);
  }
  ~FolderTest() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return join_path(folder_, name); }
  void write(const std::string& name, std::string_view bytes) const {
    publish_file(path(name), path("temporary"), bytes);
  }

  std::string folder_;
};

}  // namespace lamplighter
