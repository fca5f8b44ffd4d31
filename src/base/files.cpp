#include "base/files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "base/descriptor.h"
#include "base/sha256.h"

namespace lamplighter {
namespace {

constexpr const char* kExists = "it exists; --overwrite replaces it";
// Prefix of temporary files. It does not contain the target's name, which may be as long as the system
// allows.
constexpr const char* kTemporary = ".lamplighter-part-";
constexpr std::size_t kPiece = std::size_t{1} << 16;  // bytes per read

// Reads up to `size` bytes. Returns 0 at the end and -1 on failure.
ssize_t read_some(int descriptor, char* data, std::size_t size) {
  ssize_t got = 0;
  do {
    got = ::read(descriptor, data, size);
  } while (got < 0 && errno == EINTR);
  return got;
}

[[noreturn]] void cannot_write(const std::string& path, const std::string& why) {
  throw Error(ExitCode::output, "cannot write " + path + ": " + why);
}

Descriptor open_for_reading(const std::string& path, ExitCode code) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) throw Error(code, "cannot read " + path + ": " + system_reason());
  return file;
}

template <class Consumer>
void read_pieces(int descriptor, const std::string& path, ExitCode code, const Consumer& consume) {
  const std::unique_ptr<char[]> buffer(new char[kPiece]);
  for (;;) {
    const ssize_t got = read_some(descriptor, buffer.get(), kPiece);
    if (got < 0) throw Error(code, "cannot read " + path + ": " + system_reason());
    if (got == 0) return;
    consume(std::string_view(buffer.get(), static_cast<std::size_t>(got)));
  }
}

std::string read_bounded(const Descriptor& file, const std::string& name, ExitCode code, std::size_t most) {
  const auto refuse = [&](const std::string& got) {
    throw Error(
        code, "cannot read " + name + ": it has " + got + " bytes, expected at most " + std::to_string(most));
  };
  std::string bytes;
  struct stat status {};
  if (::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
    const auto size = static_cast<std::size_t>(status.st_size);
    if (size > most) refuse(std::to_string(size));
    bytes.reserve(size);
  }
  read_pieces(file.get(), name, code, [&](std::string_view piece) {
    if (piece.size() > most - bytes.size()) refuse("more");
    bytes.append(piece);
  });
  return bytes;
}

std::string folder_of(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

// Follows symbolic links, so that the file itself is replaced and not the link.
std::string resolve_links(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> resolved(::realpath(path.c_str(), nullptr), std::free);
  return resolved ? std::string(resolved.get()) : path;
}

// Writes to devices and pipes directly: a rename would replace them by a plain file.
void write_in_place(const std::string& path, std::string_view bytes) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.valid() || !write_all(file.get(), bytes) || !file.close()) cannot_write(path, system_reason());
}

// A new file under a temporary name. Its process holds a lock on it, so that files of killed processes can be
// recognised.
class Temporary {
 public:
  // `path` is the name for error messages.
  Temporary(const std::string& folder, const std::string& path) {
    static std::atomic<unsigned> count{0};
    do {
      name_ = join_path(folder, kTemporary + std::to_string(::getpid()) + "-" + std::to_string(count++));
      file_ = Descriptor(::open(name_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
      if (!file_.valid() && errno != EEXIST) cannot_write(path, system_reason());
    } while (!file_.valid() || !lock());
  }
  ~Temporary() {
    if (!name_.empty()) ::unlink(name_.c_str());
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  int file() const { return file_.get(); }
  bool close() { return file_.close(); }
  // Renames the file to its target. Returns false with errno on failure.
  bool publish(const std::string& target, bool overwrite) {
    if (overwrite) return rename(target);
    if (::link(name_.c_str(), target.c_str()) == 0) return true;
    if (errno == EEXIST) return false;
    // Without hard links (some file systems have none) an empty file claims the name.
    const Descriptor claim(::open(target.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!claim.valid()) return false;
    if (rename(target)) return true;
    const int reason = errno;
    ::unlink(target.c_str());
    errno = reason;
    return false;
  }

 private:
  bool rename(const std::string& target) {
    const bool done = ::rename(name_.c_str(), target.c_str()) == 0;
    if (done) name_.clear();
    return done;
  }

  // Returns false when another process removed the file as a leftover. Without locks no process removes it.
  bool lock() {
    lock_ = Descriptor(::dup(file_.get()));
    if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) return errno != EWOULDBLOCK;
    struct stat status {};
    return ::fstat(lock_.get(), &status) != 0 || status.st_nlink > 0;
  }

  std::string name_;
  Descriptor file_{-1}, lock_{-1};
};

}  // namespace

std::string read_file(const std::string& path, ExitCode code, std::size_t most) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode))
    throw Error(code, "cannot read " + path + ": it is a device or a pipe, expected a file");
  return read_bounded(open_for_reading(path, code), path, code, most);
}

std::string read_input(const std::string& path, std::size_t most) {
  const bool piped = path == "-";
  struct stat status {};
  if (!piped && ::stat(path.c_str(), &status) == 0 && (S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode))) {
    throw Error(ExitCode::input, "cannot read " + path + ": it is a device, expected a file or a pipe");
  }
  return read_bounded(piped ? Descriptor(::dup(STDIN_FILENO)) : open_for_reading(path, ExitCode::input),
                      piped ? "standard input" : path, ExitCode::input, most);
}

void write_file(const std::string& path, std::string_view bytes, bool overwrite) {
  if (path == "-") {
    if (!write_all(STDOUT_FILENO, bytes)) cannot_write("standard output", system_reason());
    return;
  }
  const std::string target = resolve_links(path);
  struct stat status {};
  const bool exists = ::stat(target.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) cannot_write(path, "it is a directory");
  if (exists && !S_ISREG(status.st_mode)) return write_in_place(path, bytes);
  if (exists && !overwrite) cannot_write(path, kExists);
  Temporary temporary(folder_of(target), path);
  if ((exists && ::fchmod(temporary.file(), status.st_mode & 07777U) != 0) ||
      !write_all(temporary.file(), bytes) || ::fsync(temporary.file()) != 0 || !temporary.close() ||
      !temporary.publish(target, overwrite))
    cannot_write(path, !overwrite && errno == EEXIST ? kExists : system_reason());
}

void remove_leftovers(const std::string& folder) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (entry.path().filename().string().rfind(kTemporary, 0) != 0 || !entry.is_regular_file(ignored))
      continue;
    const Descriptor file(::open(entry.path().c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
    if (file.valid() && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0) ::unlink(entry.path().c_str());
  }
}

void check_output(const std::string& path, bool overwrite) {
  if (path.empty()) throw Error(ExitCode::output, "cannot write: the output path is empty");
  if (path == "-") return;
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) cannot_write(path, "it is a directory");
    if (!S_ISREG(status.st_mode)) return;
    if (!overwrite) cannot_write(path, kExists);
  } else if (errno != ENOENT) {
    cannot_write(path, system_reason());
  } else if (::lstat(path.c_str(), &status) == 0 && !overwrite) {
    cannot_write(path, "it is a link to a file that is missing; --overwrite writes that file");
  }
  const std::string folder = folder_of(resolve_links(path));
  if (::access(folder.c_str(), W_OK | X_OK) != 0) {
    const bool missing = errno == ENOENT;
    cannot_write(path, "folder " + folder + ": " + system_reason() + (missing ? "; create it first" : ""));
  }
}

std::string sha256_file(const std::string& path, ExitCode code) {
  const Descriptor file = open_for_reading(path, code);
  Sha256 hash;
  read_pieces(file.get(), path, code, [&](std::string_view piece) { hash.update(piece); });
  return hash.hex_digest();
}

std::string join_path(const std::string& folder, const std::string& name) {
  return (std::filesystem::path(folder) / name).string();
}

}  // namespace lamplighter
