#include "batch/folder.h"

#include <gmock/gmock.h>
#include <sys/wait.h>

#include <fstream>

#include "batch/plan.h"
#include "tests/batch/caption_sets.h"
#include "tests/batch/records.h"

namespace lamplighter {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

class Folder : public FolderTest {
 protected:
  RunFolder hold(int index = 0, int count = 1) const { return {folder_, shard(index, count)}; }
  std::string refused(int index = 0, int count = 1) const {
    return message_of([&] { hold(index, count); }, ExitCode::output);
  }
  static Shard shard(int index, int count) {
    Shard shard;
    shard.index = index;
    shard.count = count;
    return shard;
  }
  // The images of a plan of four captions that are there.
  ImageSet present(bool verify) const {
    Plan plan;
    for (std::size_t index = 0; index < 4; ++index) plan.images.push_back({{}, generated_record(index), ""});
    return present_images(folder_, plan, verify);
  }
  void append(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::app) << text;
  }
};

TEST_F(Folder, OneProcessGeneratesAShard) {
  {
    const RunFolder first = hold(0, 2), second = hold(1, 2);
    EXPECT_THAT(refused(1, 2), AllOf(HasSubstr("shard 0001-of-0002"), HasSubstr("another process")));
    EXPECT_THAT(refused(), HasSubstr("another process"));
    EXPECT_THAT(refused(3, 4),
                AllOf(HasSubstr("with another number of shards"), HasSubstr("another process")));
  }
  EXPECT_NO_THROW(hold(3, 4));  // the others are gone
  const RunFolder whole = hold();
  EXPECT_THAT(refused(), HasSubstr(folder_));
  EXPECT_THAT(refused(0, 2), HasSubstr("another process"));
}

TEST_F(Folder, ADeadProcessHoldsNothing) {
  const pid_t child = ::fork();
  if (child == 0) {
    const RunFolder held = hold();
    publish_file(path(".tmp/image"), path(".tmp/x"), "half");
    ::raise(SIGKILL);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  ASSERT_TRUE(fs::exists(path(".tmp/image")));
  const RunFolder mine = hold();
  EXPECT_FALSE(fs::exists(path(".tmp/image")));
}

TEST_F(Folder, ConfigurationsAreComparedByKeys) {
  RunFolder run = hold();
  const Json first{{"seed", 1}, {"method", "plain"}, {"captions", "a.txt"}, {"bundle", "here"}};
  EXPECT_EQ(run.configure(first, false), 0);
  EXPECT_EQ(run.configure(first, true), 0);
  Json elsewhere = first;
  elsewhere["captions"] = "b.txt";
  elsewhere["bundle"] = "there";
  EXPECT_EQ(run.configure(elsewhere, false), 0);
  const Json other{{"seed", 2}, {"top_k", 3}, {"captions", "a.txt"}, {"bundle", "here"}};
  EXPECT_THAT(message_of([&] { run.configure(other, false); }, ExitCode::usage),
              AllOf(HasSubstr("seed (1, now 2)"), HasSubstr("method (\"plain\", now null)"),
                    HasSubstr("top_k (null, now 3)"), HasSubstr("--force-config"), Not(HasSubstr("bundle"))));
  EXPECT_EQ(read_configurations(folder_), std::vector<Json>{first});
  EXPECT_EQ(run.configure(other, true), 1);
  EXPECT_EQ(run.configure(other, false), 1);
  EXPECT_EQ(read_configurations(folder_), (std::vector<Json>{first, other}));
  EXPECT_THAT(message_of([&] { run.configure(first, false); }, ExitCode::usage),
              HasSubstr("seed (2, now 1)"));
}

TEST_F(Folder, ExtensionsNeedNoForce) {
  write("c.txt", "a\nb\nc\n");
  PlanOptions options;
  options.captions = path("c.txt");
  const Plan plan = make_plan(options);
  RunFolder run = hold();
  Json configuration{{"captions_sha256", "1"}, {"seed", 42}, {"images", 2}, {"repeats", 1}, {"limit", 2}};
  const auto change = [&](const char* key, const Json& value) {
    Json changed = configuration;
    changed[key] = value;
    return changed;
  };
  EXPECT_EQ(run.configure(configuration, false, &plan), 0);
  EXPECT_EQ(run.configure(change("limit", 3), false, &plan), 1);
  configuration = change("limit", 3);
  configuration.erase("limit");
  EXPECT_EQ(run.configure(configuration, false, &plan), 2);
  EXPECT_EQ(run.configure(change("captions_sha256", "2"), false, &plan), 3);
  configuration = change("captions_sha256", "2");
  EXPECT_EQ(run.configure(change("seed", 7), false, &plan), 4);
  EXPECT_EQ(run.configure(configuration, false, &plan), 3);  // the first seed's goes on
  EXPECT_EQ(run.configure(change("repeats", 2), false, &plan), 5);
  for (const Json& refused : {change("limit", 1), change("repeats", 1), change("top_k", 3)})
    message_of([&] { run.configure(refused, false, &plan); }, ExitCode::usage);
  EXPECT_EQ(planned_images(read_configurations(folder_)), 4U);  // of two seeds
  // The other seed goes on with its own numbers, which are smaller.
  EXPECT_EQ(run.configure(change("seed", 7), false, &plan), 4);
  // A third one takes numbers of its own, which its next run may not lower.
  Json third = change("seed", 9);
  third["limit"] = 2;
  EXPECT_EQ(run.configure(third, false, &plan), 6);
  third["limit"] = 1;
  message_of([&] { run.configure(third, false, &plan); }, ExitCode::usage);
  EXPECT_TRUE(has_other_seed(folder_, 7));
  EXPECT_FALSE(has_other_seed(folder_, 42));
}

TEST_F(Folder, ImagesMoveBeforeTheRunGoesOn) {
  write("c.txt", "new\ncaption 0\ncaption 1\n");
  PlanOptions options;
  options.captions = path("c.txt");
  const Plan plan = make_plan(options);
  {
    RunFolder run = hold();
    run.configure({{"seed", 42}}, false);
    for (const std::size_t index : {0, 1, 2}) run.add(generated_record(index), std::to_string(100 + index));
  }
  RunFolder run = hold();
  const Json changed{{"seed", 42}, {"captions_sha256", "2"}};
  EXPECT_THAT(message_of([&] { run.configure(changed, false, &plan); }, ExitCode::usage),
              HasSubstr("captions_sha256"));
  {
    const auto others = FileLock::take(path(".tmp/lock-generating"), false);
    EXPECT_THAT(message_of([&] { run.configure(changed, true, &plan); }, ExitCode::output),
                HasSubstr("by other processes"));
  }
  EXPECT_EQ(run.configure(changed, true, &plan), 1);
  EXPECT_EQ(read_file(path("images/00001.png")), "100");
  EXPECT_EQ(read_file(path("images/00002.png")), "101");
  EXPECT_EQ(read_file(path("replaced/1/images/2_0.png")), "102");
  EXPECT_EQ(run.replaced(), 1U);
  EXPECT_EQ(present_images(folder_, plan, false), (ImageSet{{1, 0}, {2, 0}}));
  EXPECT_EQ(read_records(folder_).size(), 2U);
  run.add(generated_record(0), "new");  // into the new manifest
  EXPECT_EQ(read_records(folder_).size(), 3U);
}

TEST_F(Folder, BrokenRunFilesAreReported) {
  for (const char* text :
       {"", "{", "[]", R"({"schema": 2, "configurations": [{}]})", R"({"schema": 1, "configurations": []})",
        R"({"schema": 1, "configurations": [3]})"}) {
    write("run.json", text);
    EXPECT_THAT(message_of([&] { read_configurations(folder_); }), HasSubstr("run.json")) << text;
  }
}

TEST_F(Folder, ImagesAreThereByFileAndLine) {
  {
    RunFolder run = hold();
    run.add(generated_record(0), "png");
    run.add(generated_record(1), "png");
    run.add(generated_record(2), "png");
    run.add_failed(failed_record(3));
  }
  EXPECT_EQ(present(false), (ImageSet{{0, 0}, {1, 0}, {2, 0}}));
  fs::remove(path("images/0_0.png"));
  write("images/1_0.png", "shorter");
  EXPECT_EQ(present(false), (ImageSet{{2, 0}}));
  EXPECT_EQ(present(true), ImageSet{});
}

TEST_F(Folder, AnUnfinishedLastLineIsIgnoredAndCutOff) {
  hold().add(generated_record(0), "png");
  append("manifest.jsonl", R"({"index": 1, "rep)");
  EXPECT_EQ(read_records(folder_).size(), 1U);
  hold().add(generated_record(2), "png");
  EXPECT_EQ(present(false), (ImageSet{{0, 0}, {2, 0}}));
}

TEST_F(Folder, ABadLineIsReportedWithItsPosition) {
  hold().add(generated_record(0), "png");
  append("manifest.jsonl", "{\"index\": 1}\n");
  EXPECT_THAT(message_of([&] { read_records(folder_); }), HasSubstr("manifest.jsonl line 2"));
  write("manifest.jsonl", "nonsense\n");
  EXPECT_THAT(message_of([&] { read_records(folder_); }), HasSubstr("manifest.jsonl line 1"));
}

TEST_F(Folder, ManifestsOfShardsAreRead) {
  hold(1, 2).add(generated_record(1), "png");
  hold(0, 2).add(generated_record(0), "png");
  write("manifest-notes.txt", "other");
  ASSERT_EQ(manifests(folder_).size(), 2U);
  EXPECT_THAT(manifests(folder_)[0], HasSubstr("manifest-0000-of-0002.jsonl"));
  EXPECT_EQ(read_records(folder_).size(), 2U);
  EXPECT_TRUE(manifests(path("nowhere")).empty());
  EXPECT_TRUE(read_records(path("nowhere")).empty());
}

TEST(Latest, AnImageStandsAboveAFailure) {
  Record again = failed_record(0);
  again.error = "later";
  EXPECT_EQ(latest({failed_record(0), again})[0].error, "later");
  EXPECT_FALSE(latest({failed_record(0), generated_record(0)})[0].is_failed());
  EXPECT_FALSE(latest({generated_record(0), failed_record(0)})[0].is_failed());
}

TEST(Latest, TheNewestImageStandsAndTheyAreInOrder) {
  Record newer = generated_record(1);
  newer.bytes = 5;
  const auto records =
      latest({generated_record(2), generated_record(1, 1), generated_record(1), newer, generated_record(0)});
  ASSERT_EQ(records.size(), 4U);
  EXPECT_EQ(records[0].index, 0U);
  EXPECT_EQ(records[1].bytes, 5U);
  EXPECT_EQ(records[2].repeat, 1U);
  EXPECT_EQ(records[3].index, 2U);
}

// Manifests of shards are read in the order of their names, not of their times.
TEST(Latest, ALaterConfigurationStandsInAnyOrder) {
  Record newer = generated_record(0);
  newer.configuration = 1;
  EXPECT_EQ(latest({generated_record(0), newer})[0].configuration, 1);
  EXPECT_EQ(latest({newer, generated_record(0)})[0].configuration, 1);
}

}  // namespace
}  // namespace lamplighter
