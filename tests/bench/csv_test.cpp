#include "bench/report/csv.h"

#include <gtest/gtest.h>

namespace lamplighter {
namespace {

TEST(Csv, InnerFieldsAreColumnsAndListsOneCell) {
  const Json rows = Json::parse(R"([{"name": "a", "ms": {"p50": 1.5, "p90": 2}, "depth": [0.5, 0.25]},
                                    {"name": null, "ms": {"p50": 3, "p99": 4}, "exact": true, "rounds": [{"ms": 1}]}])");
  EXPECT_EQ(to_csv(rows),
            "name,ms.p50,ms.p90,depth,ms.p99,exact\r\n"
            "a,1.5,2,\"[0.5,0.25]\",,\r\n"
            ",3,,,4,true\r\n");
}

TEST(Csv, QuotesWhatWouldPartCells) {
  EXPECT_EQ(to_csv(Json::parse(R"([{"a,b": "x,y", "c": "say \"hi\"", "d": "two\nlines", "e": "plain"}])")),
            "\"a,b\",c,d,e\r\n\"x,y\",\"say \"\"hi\"\"\",\"two\nlines\",plain\r\n");
}

TEST(Csv, NoRowsAreAnEmptyHead) {
  EXPECT_EQ(to_csv(Json::array()), "\r\n");
}

}  // namespace
}  // namespace lamplighter
