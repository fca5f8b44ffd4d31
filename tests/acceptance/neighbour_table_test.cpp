#include "acceptance/neighbours.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "base/files.h"
#include "tests/error_of.h"

namespace lamplighter {
namespace {

using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::uint16_t> row(const NeighbourTable& table, std::int64_t code) {
  return {table.row(code), table.row(code) + table.width};
}

TEST(NeighboursTest, NearestFirstWithoutTheCodeItself) {
  const NeighbourTable table = nearest_neighbours({0, 1, 3, 7}, 1, 3, Metric::l2);
  EXPECT_EQ(table.codes, 4);
  EXPECT_EQ(table.width, 3);
  EXPECT_THAT(row(table, 0), ElementsAre(1, 2, 3));
  EXPECT_THAT(row(table, 2), ElementsAre(1, 0, 3));
}

TEST(NeighboursTest, TiesGoToTheSmallerCode) {
  // A square: both neighbours of a corner are as far; duplicates at distance 0.
  const NeighbourTable table = nearest_neighbours({0, 0, 1, 1, 0, 1, 1, 0, 0, 0}, 2, 4, Metric::l2);
  EXPECT_THAT(row(table, 0), ElementsAre(4, 2, 3, 1));
  EXPECT_THAT(row(table, 1), ElementsAre(2, 3, 0, 4));
  EXPECT_THAT(row(nearest_neighbours({0, 0, 1, 1, 0, 1, 1, 0, 0, 0}, 2, 1, Metric::l2), 1), ElementsAre(2));
  // Equal but for rounding: code 2 is nearer to code 0 by 2^-50.
  const float step = std::ldexp(1.0F, -24);
  EXPECT_THAT(row(nearest_neighbours({0, step, 0, 1, 1, 0}, 2, 1, Metric::l2), 0), ElementsAre(1));
}

TEST(NeighboursTest, CosineIgnoresTheLength) {
  const std::vector<float> codebook{1, 0, 9, 0.5F, 0.9F, 0.9F, 0, 0};
  EXPECT_THAT(row(nearest_neighbours(codebook, 2, 2, Metric::l2), 0), ElementsAre(2, 3));
  EXPECT_THAT(row(nearest_neighbours(codebook, 2, 2, Metric::cosine), 0), ElementsAre(1, 2));
}

TEST(NeighboursTest, AgreesWithASortOfAllDistances) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  const std::int64_t codes = 147, dimension = 5;
  std::vector<float> codebook(static_cast<std::size_t>(codes * dimension));
  for (float& value : codebook) value = normal(random);
  std::int64_t last = 0;
  const NeighbourTable table =
      nearest_neighbours(codebook, dimension, 40, Metric::l2, [&](std::int64_t done, std::int64_t all) {
        EXPECT_GT(done, last);
        EXPECT_EQ(all, codes);
        last = done;
      });
  EXPECT_EQ(last, codes);
  for (std::int64_t code = 0; code < codes; ++code) {
    std::vector<std::pair<double, std::uint16_t>> all;
    for (std::int64_t other = 0; other < codes; ++other) {
      double square = 0;
      for (std::int64_t i = 0; i < dimension; ++i) {
        const auto a = static_cast<std::size_t>(code * dimension + i);
        const auto b = static_cast<std::size_t>(other * dimension + i);
        square += std::pow(double{codebook[a]} - codebook[b], 2);
      }
      if (other != code) all.emplace_back(square, static_cast<std::uint16_t>(other));
    }
    std::sort(all.begin(), all.end());
    for (std::size_t i = 0; i < 40; ++i) EXPECT_EQ(row(table, code)[i], all[i].second);
  }
  check_neighbours(table, "table", ExitCode::input);
}

TEST(NeighboursTest, RejectsWhatCannotBe) {
  EXPECT_THROW(nearest_neighbours({0, 1}, 1, 2, Metric::l2), Error);
  EXPECT_THROW(nearest_neighbours({0, 1}, 1, 0, Metric::l2), Error);
  EXPECT_THROW(nearest_neighbours({0, 1, 2}, 2, 1, Metric::l2), Error);
  EXPECT_THAT(error_of([&] { nearest_neighbours({0}, 1, 1, Metric::l2); }),
              HasSubstr("got 1 codes, neighbours are of two codes or more"));
  EXPECT_THROW(nearest_neighbours({0, std::numeric_limits<float>::infinity()}, 1, 1, Metric::l2), Error);
  EXPECT_EQ(metric_from("cosine"), Metric::cosine);
  EXPECT_THROW(metric_from("dot"), Error);
}

std::string npy(const std::string& header, const std::vector<std::uint16_t>& values, char version = '\1') {
  std::string bytes("\x93NUMPY", 6);
  bytes += version;
  bytes += '\0';
  bytes += static_cast<char>(header.size());
  bytes += version == '\1' ? std::string(1, '\0') : std::string(3, '\0');
  bytes += header;
  for (const std::uint16_t value : values) {
    bytes += static_cast<char>(value & 255U);
    bytes += static_cast<char>(value >> 8U);
  }
  return bytes;
}

std::string complaint(const std::string& bytes, std::int64_t k = 0) {
  const std::string file = testing::TempDir() + "neighbours_test.npy";
  write_file(file, bytes);
  const std::string message = error_of(ExitCode::input, [&] { read_npy_neighbours(file, k); });
  EXPECT_THAT(message, AnyOf("", HasSubstr(file)));
  return message;
}

const std::string kHeader = "{'descr': '<u2', 'fortran_order': False, 'shape': (3, 2), }\n";

TEST(NpyTest, ReadsTheOfficialLayout) {
  const std::string file = testing::TempDir() + "neighbours_test.npy";
  for (const char version : {'\1', '\2', '\3'}) {
    write_file(file, npy(kHeader, {1, 2, 2, 0, 0, 1}, version));
    const NeighbourTable table = read_npy_neighbours(file);
    EXPECT_EQ(table.codes, 3);
    EXPECT_EQ(table.width, 2);
    EXPECT_THAT(row(table, 1), ElementsAre(2, 0));
    EXPECT_THAT(row(read_npy_neighbours(file, 1), 2), ElementsAre(0));
  }
}

TEST(NpyTest, NamesWhatIsWrong) {
  const std::vector<std::uint16_t> good{1, 2, 2, 0, 0, 1};
  const auto header = [](const std::string& dtype, const char* order, const std::string& shape) {
    return "{'descr': '" + dtype + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }";
  };
  EXPECT_THAT(complaint("PK"), HasSubstr("not a .npy file"));
  EXPECT_THAT(complaint(""), HasSubstr("not a .npy file"));
  EXPECT_THAT(complaint(npy(kHeader, good).substr(0, 40)), HasSubstr("header is cut off"));
  EXPECT_THAT(complaint(npy(header("<f4", "False", "(3, 2)"), good)), HasSubstr("got dtype <f4"));
  EXPECT_THAT(complaint(npy(header("<u2", "True", "(3, 2)"), good)), HasSubstr("C order"));
  EXPECT_THAT(complaint(npy(header("<u2", "False", "(6,)"), good)), HasSubstr("two dimensions"));
  EXPECT_THAT(complaint(npy(header("<u2", "False", "(3, 3)"), good)), HasSubstr("got 12 bytes"));
  EXPECT_THAT(complaint(npy(kHeader, good), 3), HasSubstr("at least 3 neighbours"));
  EXPECT_THAT(complaint(npy(kHeader, {1, 2, 2, 3, 0, 1})), HasSubstr("row 1, column 1: got 3"));
  EXPECT_THAT(complaint(npy(kHeader, {1, 2, 1, 0, 0, 1})), HasSubstr("other codes than the row's own"));
  EXPECT_THAT(complaint(npy(kHeader, {1, 1, 2, 0, 0, 1})), HasSubstr("expected every code once in a row"));
  EXPECT_THAT(complaint(npy(kHeader, good)), "");
}

}  // namespace
}  // namespace lamplighter
