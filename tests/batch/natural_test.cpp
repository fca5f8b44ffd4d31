#include "batch/natural.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

namespace lamplighter {
namespace {

TEST(Natural, NumbersCountAsNumbers) {
  const std::vector<std::string> sorted{"",          "1.png",      "2.png",       "010.png",     "10.png",
                                        "10_2.png",  "10_10.png",  "prompt",      "prompt_1",    "prompt_2",
                                        "prompt_10", "prompt_10a", "prompt_10a9", "prompt_10a10"};
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    for (std::size_t j = 0; j < sorted.size(); ++j)
      EXPECT_EQ(natural_less(sorted[i], sorted[j]), i < j) << sorted[i] << " and " << sorted[j];
  }
}

TEST(Natural, NumbersMayBeLongAndBytesAreUnsigned) {
  EXPECT_TRUE(natural_less("99999999999999999999999998", "99999999999999999999999999"));
  EXPECT_TRUE(natural_less("9", "99999999999999999999999999"));
  EXPECT_TRUE(natural_less("z", "ü"));
  EXPECT_TRUE(natural_less("0", "1"));
  EXPECT_FALSE(natural_less("000", "000"));
}

}  // namespace
}  // namespace lamplighter
