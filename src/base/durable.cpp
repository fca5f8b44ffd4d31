#include "base/durable.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "lamplighter/error.h"

namespace lamplighter {
namespace {

constexpr mode_t kMode = 0666;  // reduced by the process's umask

[[noreturn]] void cannot_write(const std::string& path) {
  throw Error(ExitCode::output, "cannot write " + path + ": " + system_reason());
}

void force_folder(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const Descriptor entry(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!entry.valid() || ::fsync(entry.get()) != 0) cannot_write(path);
}

// Counts the bytes after the last line end of a file.
off_t torn_bytes(int file, off_t size) {
  std::array<char, 4096> buffer{};
  for (off_t end = size; end > 0;) {
    const off_t begin = std::max<off_t>(0, end - static_cast<off_t>(buffer.size()));
    const ssize_t got = ::pread(file, buffer.data(), static_cast<std::size_t>(end - begin), begin);
    if (got != end - begin) return -1;
    const std::string_view piece(buffer.data(), static_cast<std::size_t>(got));
    const std::size_t newline = piece.rfind('\n');
    if (newline != std::string_view::npos) return size - begin - static_cast<off_t>(newline) - 1;
    end = begin;
  }
  return size;
}

// The process that holds a lock on this file and is stopped, as far as this machine knows; 0: none.
int stopped_holder(int file) {
  struct stat status {};
  if (::fstat(file, &status) != 0) return 0;
  const std::string inode = ":" + std::to_string(status.st_ino);
  std::ifstream locks("/proc/locks");
  for (std::string text; std::getline(locks, text);) {
    // 1: FLOCK ADVISORY WRITE 1234 08:01:5678 0 EOF
    std::istringstream words(text);
    std::string number, kind, mode, access, place;
    int process = 0;
    if (!(words >> number >> kind >> mode >> access >> process >> place) || kind != "FLOCK") continue;
    if (place.size() < inode.size() || place.compare(place.size() - inode.size(), inode.size(), inode) != 0)
      continue;
    std::ifstream about("/proc/" + std::to_string(process) + "/stat");
    std::string line;
    std::getline(about, line);
    const std::size_t name_end = line.rfind(") ");  // the name may have brackets, too
    if (name_end != std::string::npos && (line[name_end + 2] == 'T' || line[name_end + 2] == 't'))
      return process;
  }
  return 0;
}

Descriptor open_lock(const std::string& path) {
  Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kMode));
  if (!file.valid()) cannot_write(path);
  return file;
}

[[noreturn]] void fail_for_stopped(const std::string& path, const std::string& process) {
  throw Error(ExitCode::output, path + ": process " + process +
                                    ", which is stopped, holds this lock; kill -CONT " + process +
                                    " lets it go on");
}

}  // namespace

void publish_file(const std::string& path, const std::string& temporary, std::string_view bytes) {
  Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, kMode));
  if (!file.valid()) cannot_write(temporary);
  if (!write_all(file.get(), bytes) || ::fsync(file.get()) != 0 || !file.close() ||
      ::rename(temporary.c_str(), path.c_str()) != 0) {
    const int why = errno;
    ::unlink(temporary.c_str());
    errno = why;
    cannot_write(path);
  }
  force_folder(path);
}

LineFile::LineFile(const std::string& path)
    : path_(path), file_(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, kMode)) {
  struct stat status {};
  if (!file_.valid() || ::fstat(file_.get(), &status) != 0) cannot_write(path);
  const off_t torn = torn_bytes(file_.get(), status.st_size);
  if (torn < 0 || (torn > 0 && ::ftruncate(file_.get(), status.st_size - torn) != 0)) cannot_write(path);
  force_folder(path);
}

void LineFile::append(std::string_view line) {
  // A line that was written in part is removed, so that later lines do not continue it.
  const off_t end = ::lseek(file_.get(), 0, SEEK_END);
  const std::string whole = std::string(line) + '\n';
  if (end < 0 || !write_all(file_.get(), whole) || ::fdatasync(file_.get()) != 0) {
    const int why = errno;
    if (end >= 0) [[maybe_unused]]
      const int cut = ::ftruncate(file_.get(), end);
    errno = why;
    cannot_write(path_);
  }
}

std::optional<FileLock> FileLock::take(const std::string& path, bool exclusive) {
  Descriptor file = open_lock(path);
  if (::flock(file.get(), (exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB) == 0) return FileLock(std::move(file));
  if (errno != EWOULDBLOCK) cannot_write(path);
  return std::nullopt;
}

bool FileLock::is_taken(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return file.valid() && ::flock(file.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

FileLock FileLock::wait(const std::string& path, std::chrono::milliseconds most) {
  constexpr auto poll = std::chrono::milliseconds(20);
  const auto end = std::chrono::steady_clock::now() + most;
  Descriptor file = open_lock(path);
  while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EINTR && errno != EWOULDBLOCK) cannot_write(path);
    const int stopped = stopped_holder(file.get());
    if (stopped != 0) fail_for_stopped(path, std::to_string(stopped));
    if (std::chrono::steady_clock::now() >= end)
      throw Error(ExitCode::output, path + ": another process has held this lock for too long; is it stuck?");
    std::this_thread::sleep_for(poll);
  }
  return FileLock(std::move(file));
}

}  // namespace lamplighter
