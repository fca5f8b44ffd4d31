#include "batch/processes/shard.h"

#include <gmock/gmock.h>

#include <map>

#include "tests/batch/caption_sets.h"

namespace lamplighter {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

Shard find(const Variables& variables, const std::string& flag = "", int count = 0) {
  return find_shard(flag, count, [&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

std::string rejected(const Variables& variables, const std::string& flag = "", int count = 0) {
  return message_of([&] { find(variables, flag, count); }, ExitCode::usage);
}

void expect_shard(const Shard& shard, int index, int count, int local, const std::string& source) {
  EXPECT_EQ(shard.index, index);
  EXPECT_EQ(shard.count, count);
  EXPECT_EQ(shard.local, local);
  EXPECT_EQ(shard.source, source);
}

TEST(Shard, IsTheWholeRunWithoutLauncher) {
  expect_shard(find({}), 0, 1, 0, "");
  EXPECT_EQ(find({}).name(), "");
}

TEST(Shard, EveryCaptionBelongsToOne) {
  for (std::size_t caption = 0; caption < 10; ++caption) {
    for (const int index : {0, 1, 2})
      EXPECT_EQ(find({}, std::to_string(index) + "/3").generates(caption), caption % 3 == std::size_t(index));
  }
}

TEST(Shard, IsNamedByIndexAndCount) {
  EXPECT_EQ(find({}, "3/16").name(), "0003-of-0016");
  EXPECT_EQ(find({}, "0/1").name(), "");
  EXPECT_EQ(find({}, "12345/20000").name(), "12345-of-20000");
}

TEST(Shard, ReadsEveryLauncher) {
  expect_shard(find({{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}}), 5, 8, 1, "torchrun");
  expect_shard(find({{"OMPI_COMM_WORLD_RANK", "2"},
                     {"OMPI_COMM_WORLD_SIZE", "4"},
                     {"OMPI_COMM_WORLD_LOCAL_RANK", "3"}}),
               2, 4, 3, "Open MPI");
  expect_shard(
      find({{"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "6"}, {"SLURM_NTASKS", "7"}, {"SLURM_LOCALID", "2"}}), 6,
      7, 2, "Slurm");
  expect_shard(find({{"JOB_COMPLETION_INDEX", "9"}}, "", 10), 9, 10, 0, "Kubernetes");
}

TEST(Shard, OfAnArrayCountsFromItsLeastTask) {
  expect_shard(find({{"SLURM_ARRAY_TASK_ID", "3"}, {"SLURM_ARRAY_TASK_COUNT", "4"}}), 3, 4, 0,
               "a Slurm array");
  expect_shard(
      find({{"SLURM_ARRAY_TASK_ID", "13"}, {"SLURM_ARRAY_TASK_COUNT", "4"}, {"SLURM_ARRAY_TASK_MIN", "10"}}),
      3, 4, 0, "a Slurm array");
  // Gaps between task numbers would omit captions.
  EXPECT_THAT(
      rejected(
          {{"SLURM_ARRAY_TASK_ID", "8"}, {"SLURM_ARRAY_TASK_COUNT", "3"}, {"SLURM_ARRAY_TASK_MIN", "0"}}),
      AllOf(HasSubstr("Slurm array"), HasSubstr("8/3")));
  EXPECT_THAT(
      rejected(
          {{"SLURM_ARRAY_TASK_ID", "1"}, {"SLURM_ARRAY_TASK_COUNT", "3"}, {"SLURM_ARRAY_TASK_MIN", "2"}}),
      HasSubstr("-1/3"));
}

TEST(Shard, SlurmOutsideAStepIsNoLauncher) {
  expect_shard(find({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}), 0, 1, 0, "");
}

TEST(Shard, TheFlagComesBeforeLaunchersAndTheInnerLauncherBeforeSlurm) {
  const Variables all{
      {"RANK", "1"},         {"WORLD_SIZE", "2"},   {"OMPI_COMM_WORLD_RANK", "2"}, {"SLURM_STEP_ID", "0"},
      {"SLURM_PROCID", "3"}, {"SLURM_NTASKS", "4"}, {"OMPI_COMM_WORLD_SIZE", "3"}};
  expect_shard(find(all, "4/5"), 4, 5, 0, "--shard");
  expect_shard(find(all), 1, 2, 0, "torchrun");
  Variables fewer = all;
  fewer.erase("RANK");
  expect_shard(find(fewer), 2, 3, 0, "Open MPI");
}

TEST(Shard, NeedsACount) {
  EXPECT_THAT(rejected({{"JOB_COMPLETION_INDEX", "0"}}), AllOf(HasSubstr("Kubernetes"), HasSubstr("shards")));
  EXPECT_THAT(rejected({{"RANK", "0"}}), HasSubstr("torchrun"));
  EXPECT_THAT(rejected({{"RANK", "0"}, {"WORLD_SIZE", "2"}}, "", 4),
              AllOf(HasSubstr("shards: got '4'"), HasSubstr("WORLD_SIZE = 2")));
  EXPECT_THAT(rejected({}, "", 4), HasSubstr("shards: got '4'"));
}

TEST(Shard, RejectsBadNumbers) {
  for (const char* flag : {"x", "1", "/", "1/", "/2", "-1/2", "2/2", "3/2", "0/0", "1/2/3", "1 /2", "1/2x",
                           "0/100001", "1/99999999999999"}) {
    EXPECT_THAT(rejected({}, flag), HasSubstr("shard")) << flag;
  }
  EXPECT_THAT(rejected({{"RANK", ""}, {"WORLD_SIZE", "2"}}), HasSubstr("RANK: got ''"));
  EXPECT_THAT(rejected({{"RANK", "0"}, {"WORLD_SIZE", "two"}}), HasSubstr("WORLD_SIZE: got 'two'"));
  EXPECT_THAT(rejected({{"RANK", "2"}, {"WORLD_SIZE", "2"}}), HasSubstr("torchrun: shard: got '2/2'"));
  EXPECT_THAT(rejected({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "-1"}}), HasSubstr("LOCAL_RANK"));
}

}  // namespace
}  // namespace lamplighter
