#include "base/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

#include "base/sha256.h"

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

std::string message_of(const std::function<void()>& action, ExitCode expected) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), expected);
    return error.what();
  }
  ADD_FAILURE() << "no error was thrown";
  return "";
}

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
  EXPECT_THAT(message_of([] { write_file("/dev/full", "x"); }, ExitCode::output), HasSubstr("No space left"));
}

TEST_F(Files, LeavesNothingBehindOnFailure) {
  fs::create_directories(path("folder"));
  EXPECT_THAT(message_of([&] { write_file(path("folder"), "x"); }, ExitCode::output), HasSubstr("directory"));
  EXPECT_THAT(message_of([&] { write_file(path("none/x"), "x"); }, ExitCode::output), HasSubstr("none/x"));
  EXPECT_EQ(entries(), 1U);
}

TEST_F(Files, ChecksOutputsWithoutTouchingThem) {
  write_file(path("x"), "x");
  check_output(path("new"), false);
  check_output(path("x"), true);
  EXPECT_THAT(message_of([&] { check_output(path("x"), false); }, ExitCode::output),
              HasSubstr("overwrite is off"));
  EXPECT_THAT(message_of([&] { check_output(path("none/x"), false); }, ExitCode::output),
              HasSubstr("No such file"));
  EXPECT_THAT(message_of([&] { check_output(path("x/y"), false); }, ExitCode::output),
              HasSubstr("Not a directory"));
  EXPECT_THAT(message_of([&] { check_output(folder_, true); }, ExitCode::output), HasSubstr("directory"));
  EXPECT_EQ(entries(), 1U);
}

TEST_F(Files, ReadingNamesPathAndReason) {
  EXPECT_THAT(message_of([&] { read_file(path("none")); }, ExitCode::input), HasSubstr("none: No such file"));
  EXPECT_THAT(message_of([&] { read_file(folder_, ExitCode::bundle); }, ExitCode::bundle),
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
