#include "base/files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>
#include <vector>

#include "base/sha256.h"
#include "tests/error_of.h"

namespace lamplighter {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class Files : public testing::Test {
 protected:
  Files() : folder_(testing::TempDir() + "files_test." + std::to_string(getpid())) {
    fs::create_directories(folder_);
  }
  ~Files() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return join_path(folder_, name); }
  std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), {}));
  }

  std::string folder_;
};

TEST_F(Files, WritesAndReadsBack) {
  const std::string bytes("a\0b\n", 4);
  write_file(path("x"), bytes);
  EXPECT_EQ(read_file(path("x")), bytes);
  write_file(path("x"), "");
  EXPECT_EQ(read_file(path("x")), "");
  EXPECT_EQ(entries(), 1U);
}

TEST_F(Files, KeepsPermissionsOfAReplacedFile) {
  write_file(path("x"), "old");
  fs::permissions(path("x"), fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read);
  write_file(path("x"), "new");
  EXPECT_EQ(fs::status(path("x")).permissions(),
            fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read);
}

TEST_F(Files, FollowsSymbolicLinks) {
  write_file(path("target"), "old");
  fs::create_symlink("target", path("link"));
  write_file(path("link"), "new");
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(read_file(path("target")), "new");
}

TEST_F(Files, WritesDevicesInPlace) {
  write_file("/dev/null", "gone");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_THAT(error_of(ExitCode::output, [] { write_file("/dev/full", "x"); }), HasSubstr("No space left"));
}

TEST_F(Files, LeavesNothingBehindOnFailure) {
  fs::create_directories(path("folder"));
  EXPECT_THAT(error_of(ExitCode::output, [&] { write_file(path("folder"), "x"); }), HasSubstr("directory"));
  EXPECT_THAT(error_of(ExitCode::output, [&] { write_file(path("none/x"), "x"); }), HasSubstr("none/x"));
  EXPECT_EQ(entries(), 1U);
}

TEST_F(Files, ChecksOutputsWithoutTouchingThem) {
  write_file(path("x"), "x");
  check_output(path("new"), false);
  check_output(path("x"), true);
  EXPECT_THAT(error_of(ExitCode::output, [&] { check_output(path("x"), false); }), HasSubstr("--overwrite "));
  EXPECT_THAT(error_of(ExitCode::output, [&] { check_output(path("none/x"), false); }),
              HasSubstr("No such file"));
  EXPECT_THAT(error_of(ExitCode::output, [&] { check_output(path("x/y"), false); }),
              HasSubstr("Not a directory"));
  EXPECT_THAT(error_of(ExitCode::output, [&] { check_output(folder_, true); }), HasSubstr("directory"));
  EXPECT_EQ(entries(), 1U);
}

TEST_F(Files, KeepsFilesThatComeIntoBeing) {
  write_file(path("x"), "first", false);
  EXPECT_THAT(error_of(ExitCode::output, [&] { write_file(path("x"), "second", false); }),
              HasSubstr("--overwrite "));
  fs::create_symlink("nowhere", path("link"));
  EXPECT_THAT(error_of(ExitCode::output, [&] { write_file(path("link"), "x", false); }),
              HasSubstr("--overwrite "));
  EXPECT_EQ(read_file(path("x")), "first");
  EXPECT_EQ(entries(), 2U);
}

// Many writers create the same name at the same time; exactly one succeeds.
TEST_F(Files, OneOfManyCreates) {
  constexpr int writers = 8, names = 25;
  std::atomic<int> written{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < writers; ++i) {
    threads.emplace_back([&, i] {
      for (int name = 0; name < names; ++name) {
        try {
          write_file(path(std::to_string(name)), std::to_string(i), false);
          ++written;
        } catch (const Error&) {
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(written, names);
  EXPECT_EQ(entries(), static_cast<std::size_t>(names));
}

TEST_F(Files, TakesNamesAsLongAsTheSystemDoes) {
  write_file(path(std::string(255, 'x')), "x");
  EXPECT_EQ(entries(), 1U);
  EXPECT_THAT(error_of(ExitCode::output, [&] { check_output(path(std::string(256, 'x')), true); }),
              HasSubstr("too long"));
}

// The mask belongs to the whole process: reading it changes it for other threads.
TEST_F(Files, NewFilesHaveThePermissionsOfTheMask) {
  const mode_t mask = ::umask(027);
  write_file(path("x"), "x");
  EXPECT_EQ(::umask(mask), 027U);
  EXPECT_EQ(fs::status(path("x")).permissions(),
            fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read);
}

TEST_F(Files, RemovesWhatKilledProcessesLeft) {
  const std::string left = path(".lamplighter-part-1-0"), alive = path(".lamplighter-part-1-1");
  write_file(left, "half");
  write_file(alive, "half");
  write_file(path(".lamplighter"), "kept");
  const int file = ::open(alive.c_str(), O_RDWR);
  ASSERT_EQ(::flock(file, LOCK_EX), 0);
  remove_leftovers(folder_);
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(alive));
  EXPECT_TRUE(fs::exists(path(".lamplighter")));
  ::close(file);
  remove_leftovers(path("nowhere"));
}

// A writer keeps its file while another process cleans the folder repeatedly.
TEST_F(Files, CleaningLeavesWritersAlone) {
  std::atomic<bool> done{false};
  std::thread cleaner([&] {
    while (!done) remove_leftovers(folder_);
  });
  for (int i = 0; i < 200; ++i) write_file(path("x"), std::to_string(i));
  done = true;
  cleaner.join();
  EXPECT_EQ(read_file(path("x")), "199");
  EXPECT_EQ(entries(), 1U);
}

TEST_F(Files, RefusesFilesWithoutAnEnd) {
  EXPECT_THAT(error_of(ExitCode::input, [] { read_file("/dev/zero"); }), HasSubstr("device or a pipe"));
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_THAT(error_of(ExitCode::input, [&] { read_file(path("pipe")); }), HasSubstr("device or a pipe"));
  EXPECT_THAT(error_of(ExitCode::input, [] { read_input("/dev/zero"); }), HasSubstr("it is a device"));
  write_file(path("x"), "12345");
  EXPECT_EQ(read_file(path("x"), ExitCode::bundle, 5), "12345");
  EXPECT_THAT(error_of(ExitCode::bundle, [&] { read_file(path("x"), ExitCode::bundle, 4); }),
              HasSubstr("x: it has 5 bytes, expected at most 4"));
}

TEST_F(Files, ReadingNamesPathAndReason) {
  EXPECT_THAT(error_of(ExitCode::input, [&] { read_file(path("none")); }), HasSubstr("none: No such file"));
  EXPECT_THAT(error_of(ExitCode::bundle, [&] { read_file(folder_, ExitCode::bundle); }),
              HasSubstr("directory"));
}

TEST(Sha256, MatchesPublishedDigests) {
  for (const bool instructions : {false, has_sha_instructions()}) {
    Sha256 empty(instructions);
    EXPECT_EQ(empty.hex_digest(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    Sha256 abc(instructions);
    abc.update("abc");
    EXPECT_EQ(abc.hex_digest(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    Sha256 million(instructions);
    for (int i = 0; i < 1000; ++i) million.update(std::string(1000, 'a'));
    EXPECT_EQ(million.hex_digest(), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  }
}

TEST(Sha256, DoesNotDependOnThePieces) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += static_cast<char>(i * 7);
  for (std::size_t size : {1U, 3U, 55U, 56U, 63U, 64U, 65U, 119U, 300U}) {
    for (std::size_t piece : {1U, 7U, 64U, 300U}) {
      Sha256 whole(false), pieces;
      whole.update(text.substr(0, size));
      for (std::size_t at = 0; at < size; at += piece)
        pieces.update(text.substr(at, std::min(piece, size - at)));
      EXPECT_EQ(whole.hex_digest(), pieces.hex_digest()) << size << " " << piece;
    }
  }
}

}  // namespace
}  // namespace lamplighter
