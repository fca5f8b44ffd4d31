#include "batch/status.h"

#include <gmock/gmock.h>

#include "batch/folder.h"
#include "tests/batch/caption_sets.h"
#include "tests/batch/records.h"

namespace lamplighter {
namespace {

using testing::HasSubstr;

TEST(FormatDuration, CountsInWhatReadsWell) {
  EXPECT_EQ(format_duration(0), "0.0 s");
  EXPECT_EQ(format_duration(59.94), "59.9 s");
  EXPECT_EQ(format_duration(59.97), "1:00 min");
  EXPECT_EQ(format_duration(90), "1:30 min");
  EXPECT_EQ(format_duration(3599.4), "59:59 min");
  EXPECT_EQ(format_duration(3599.6), "1:00 h");
  EXPECT_EQ(format_duration(7200), "2:00 h");
  EXPECT_EQ(format_duration(100 * 3600 + 61), "100:01 h");
}

using Status = FolderTest;

TEST_F(Status, DescribesARun) {
  EXPECT_THAT(message_of([&] { describe_status(folder_); }), HasSubstr("run.json"));
  {
    RunFolder run(folder_, {});
    run.configure({{"images", 3}}, false);
    run.add(generated_record(0), "png");
    run.add_failed(failed_record(1));
    EXPECT_THAT(describe_status(folder_), HasSubstr("being generated"));
  }
  EXPECT_EQ(describe_status(folder_), folder_ + ": 1 of 3 images, 1 failed, 1.33 tokens a pass\nnot running");
  RunFolder run(folder_, {});
  run.add(generated_record(1), "png");
  run.add(generated_record(2), "png");
  EXPECT_THAT(describe_status(folder_), HasSubstr("3 of 3 images, 1.33"));
}

}  // namespace
}  // namespace lamplighter
