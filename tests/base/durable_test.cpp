#include "base/durable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>

#include "base/files.h"
#include "lamplighter/error.h"
#include "tests/error_of.h"

namespace lamplighter {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class Durable : public testing::Test {
 protected:
  Durable() : folder_(testing::TempDir() + "durable_test." + std::to_string(::getpid())) {
    fs::create_directories(folder_);
  }
  ~Durable() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return join_path(folder_, name); }
  void write(const std::string& name, const std::string& text) const { std::ofstream(path(name)) << text; }

  std::string folder_;
};

TEST_F(Durable, PublishesInOneStep) {
  write("temporary", "what a dead process left, and more");
  publish_file(path("file"), path("temporary"), "first");
  EXPECT_EQ(read_file(path("file")), "first");
  EXPECT_FALSE(fs::exists(path("temporary")));
  std::ifstream reader(path("file"));
  publish_file(path("file"), path("temporary"), std::string("a\0b", 3));
  std::string seen;
  std::getline(reader, seen);
  EXPECT_EQ(seen, "first");  // who has it open keeps the old one
  EXPECT_EQ(read_file(path("file")), std::string("a\0b", 3));
}

TEST_F(Durable, AFailureLeavesNothing) {
  fs::create_directories(path("file/full"));
  EXPECT_THROW(publish_file(path("file"), path("temporary"), "x"), Error);
  EXPECT_FALSE(fs::exists(path("temporary")));
  EXPECT_THAT(error_of(ExitCode::output, [&] { publish_file(path("x"), path("nowhere/temporary"), "x"); }),
              HasSubstr("nowhere/temporary: No such file"));
  EXPECT_FALSE(fs::exists(path("x")));
}

TEST_F(Durable, DoesNotWriteThroughLinks) {
  write("elsewhere", "old");
  fs::create_symlink(path("elsewhere"), path("temporary"));
  EXPECT_THROW(publish_file(path("file"), path("temporary"), "new"), Error);
  EXPECT_EQ(read_file(path("elsewhere")), "old");
}

TEST_F(Durable, LinesAreAppended) {
  LineFile(path("lines")).append("one");
  LineFile lines(path("lines"));
  lines.append("two");
  EXPECT_EQ(read_file(path("lines")), "one\ntwo\n");
}

TEST_F(Durable, AnUnfinishedLineIsCutOff) {
  for (const std::size_t torn : {std::size_t{1}, std::size_t{4095}, std::size_t{4096}, std::size_t{10'000}}) {
    for (const std::string& whole : {std::string(), std::string("one\n"), std::string(5000, 'x') + "\n"}) {
      write("lines", whole + std::string(torn, '{'));
      LineFile(path("lines")).append("next");
      EXPECT_EQ(read_file(path("lines")), whole + "next\n") << torn << " after " << whole.size();
    }
  }
}

TEST_F(Durable, LocksExcludeEachOther) {
  {
    const auto shared = FileLock::take(path("lock"), false), again = FileLock::take(path("lock"), false);
    ASSERT_TRUE(shared && again);
    EXPECT_FALSE(FileLock::take(path("lock"), true));
  }
  auto exclusive = FileLock::take(path("lock"), true);
  ASSERT_TRUE(exclusive);
  EXPECT_FALSE(FileLock::take(path("lock"), true));
  EXPECT_FALSE(FileLock::take(path("lock"), false));
  exclusive.reset();
  EXPECT_TRUE(FileLock::take(path("lock"), true));
}

TEST_F(Durable, WaitsForALock) {
  auto held = FileLock::take(path("lock"), true);
  auto waiting = std::async(std::launch::async, [&] { const FileLock lock = FileLock::wait(path("lock")); });
  EXPECT_EQ(waiting.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  held.reset();
  EXPECT_EQ(waiting.wait_for(std::chrono::seconds(20)), std::future_status::ready);
}

TEST_F(Durable, WaitingForALockEnds) {
  const auto held = FileLock::take(path("lock"), true);
  EXPECT_THROW(FileLock::wait(path("lock"), std::chrono::milliseconds(30)), Error);
}

TEST_F(Durable, AStoppedProcessIsNotWaitedFor) {
  const pid_t child = fork();
  if (child == 0) {
    const auto held = FileLock::take(path("lock"), true);
    raise(SIGSTOP);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, WUNTRACED), child);
  ASSERT_TRUE(WIFSTOPPED(status));
  EXPECT_THAT(error_of([&] { FileLock::wait(path("lock")); }),
              HasSubstr("process " + std::to_string(child) + ", which is stopped"));
  kill(child, SIGCONT);
  ASSERT_EQ(waitpid(child, &status, 0), child);
  FileLock::wait(path("lock"));
}

}  // namespace
}  // namespace lamplighter
