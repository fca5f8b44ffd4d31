#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/descriptor.h"

// Files that hold what they should after a crash of the program or of the machine.
namespace lamplighter {

// Makes `path` a file with these bytes in one step: they go to `temporary`, which lies on the same disk and
// is replaced if it exists, are forced to the disk and renamed, and so is the folder's entry. On failure the
// temporary file is removed. Throws Error(ExitCode::output).
void publish_file(const std::string& path, const std::string& temporary, std::string_view bytes);

// A text file that grows by whole lines, each of which is on the disk when append returns.
class LineFile {
 public:
  // Opens or creates it. A last line without its end, which a crash leaves, is cut off. Throws
  // Error(ExitCode::output).
  explicit LineFile(const std::string& path);
  void append(std::string_view line);  // without its end

 private:
  std::string path_;
  Descriptor file_;
};

// A lock on a file, which goes with the process that holds it.
class FileLock {
 public:
  // Creates the file where it is missing. None when another process holds the lock exclusively, or at all
  // while `exclusive`. Throws Error(ExitCode::output).
  static std::optional<FileLock> take(const std::string& path, bool exclusive);
  // Whether another process holds the lock in some way. Needs a file that can be read alone.
  static bool is_taken(const std::string& path);
  // As take, exclusively, but waits.
  static FileLock wait(const std::string& path);

 private:
  explicit FileLock(Descriptor file) : file_(std::move(file)) {}
  Descriptor file_;
};

}  // namespace lamplighter
