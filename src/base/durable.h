#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/descriptor.h"

// Files that keep their content through a crash of the program or of the machine.
namespace lamplighter {

// Replaces the content of `path` in one step: writes `temporary` on the same disk, syncs it, renames it and
// syncs the folder. An existing temporary file is overwritten, and a failure removes it. Throws
// Error(ExitCode::output).
void publish_file(const std::string& path, const std::string& temporary, std::string_view bytes);

// A text file that grows by whole lines. Each line is on the disk when append returns.
class LineFile {
 public:
  // Opens or creates the file, and cuts off an unfinished last line, which a crash leaves. Throws
  // Error(ExitCode::output).
  explicit LineFile(const std::string& path);
  void append(std::string_view line);  // `line` has no line end

 private:
  std::string path_;
  Descriptor file_;
};

// A lock on a file. The system releases it when the process ends.
class FileLock {
 public:
  // Creates a missing file. Returns nothing while another process holds the lock: exclusively, or, with
  // `exclusive`, in any way. Throws Error(ExitCode::output).
  static std::optional<FileLock> take(const std::string& path, bool exclusive);
  // Whether another process holds the lock in any way. Read permission on the file is enough.
  static bool is_taken(const std::string& path);
  // Waits for the exclusive lock. Throws Error(ExitCode::output) when `most` has passed, and soon where the
  // process that holds it is stopped.
  static FileLock wait(const std::string& path, std::chrono::milliseconds most = std::chrono::minutes(10));

 private:
  explicit FileLock(Descriptor file) : file_(std::move(file)) {}
  Descriptor file_;
};

}  // namespace lamplighter
