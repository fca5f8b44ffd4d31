#include "bundle/codebook.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/files.h"
#include "base/safetensors.h"
#include "tests/error_of.h"

namespace lamplighter {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class TableFile : public testing::Test {
 protected:
  TableFile() : path_(testing::TempDir() + "codebook_test." + std::to_string(getpid())) {}
  ~TableFile() override { std::filesystem::remove(path_); }

  NeighbourTable read(const std::string& bytes, std::int64_t codes, std::int64_t k) const {
    write_file(path_, bytes);
    return read_neighbours(path_, codes, k, ExitCode::input);
  }
  std::string refusal(const std::string& bytes, std::int64_t codes, std::int64_t k) const {
    return error_of(ExitCode::input, [&] { read(bytes, codes, k); });
  }

  std::string path_;
};

const NeighbourTable kTable{3, 2, {1, 2, 2, 0, 0, 1}};

std::string npy(const NeighbourTable& table) {
  std::string header = "{'descr': '<u2', 'fortran_order': False, 'shape': (" + std::to_string(table.codes) +
                       ", " + std::to_string(table.width) + "), }";
  header.resize(117, ' ');
  header += '\n';
  return std::string("\x93NUMPY\x01\x00", 8) + std::string("\x76\x00", 2) + header +
         std::string(reinterpret_cast<const char*>(table.ids.data()), table.ids.size() * 2);
}

TEST_F(TableFile, BothFormatsAreReadAlike) {
  for (const std::string& bytes : {encode_neighbours(kTable), npy(kTable)}) {
    const NeighbourTable all = read(bytes, 3, 0);
    EXPECT_EQ(all.codes, 3);
    EXPECT_EQ(all.width, 2);
    EXPECT_THAT(all.ids, ElementsAre(1, 2, 2, 0, 0, 1));
    const NeighbourTable first = read(bytes, 3, 1);
    EXPECT_EQ(first.width, 1);
    EXPECT_THAT(first.ids, ElementsAre(1, 2, 0));
  }
}

TEST_F(TableFile, TablesOfOthersAreRefused) {
  for (const std::string& bytes : {encode_neighbours(kTable), npy(kTable)}) {
    EXPECT_THAT(refusal(bytes, 4, 0), HasSubstr("another codebook"));
    EXPECT_THAT(refusal(bytes, 3, 3), HasSubstr("3"));
    EXPECT_THAT(refusal(bytes.substr(0, bytes.size() - 1), 3, 0), HasSubstr(path_));
  }
  const NeighbourTable itself{3, 2, {0, 2, 2, 0, 0, 1}}, beyond{3, 2, {1, 2, 2, 0, 0, 7}};
  EXPECT_THAT(refusal(encode_neighbours(itself), 3, 0), HasSubstr("row 0"));
  EXPECT_THAT(refusal(encode_neighbours(beyond), 3, 0), HasSubstr("row 2"));
  EXPECT_THAT(
      refusal(encode_safetensors(
                  {{"neighbours", {"I16", {3, 2}, std::string_view("\0\0\0\0\0\0\0\0\0\0\0\0", 12)}}}),
              3, 0),
      HasSubstr("I16"));
  EXPECT_THAT(refusal(encode_safetensors({{"other", {"U16", {0, 2}, ""}}}), 3, 0), HasSubstr("neighbours"));
  EXPECT_THAT(refusal("", 3, 0), HasSubstr(path_));
}

}  // namespace
}  // namespace lamplighter
