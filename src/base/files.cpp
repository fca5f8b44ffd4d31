#include "base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <utility>

#include "base/sha256.h"

namespace lamplighter {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 20;  // bytes per read

std::string reason() {
  return std::strerror(errno);
}

// A file descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() { close(); }

  bool valid() const { return number_ >= 0; }
  int get() const { return number_; }
  bool close() {
    const int number = std::exchange(number_, -1);
    return number < 0 || ::close(number) == 0;
  }

 private:
  int number_;
};

// Up to `size` bytes; 0 at the end, -1 on failure.
ssize_t read_some(int descriptor, char* data, std::size_t size) {
  ssize_t got = 0;
  do {
    got = ::read(descriptor, data, size);
  } while (got < 0 && errno == EINTR);
  return got;
}

bool write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::write(descriptor, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(done));
  }
  return true;
}

[[noreturn]] void cannot_write(const std::string& path, const std::string& why) {
  throw Error(ExitCode::output, "cannot write " + path + ": " + why);
}

Descriptor open_for_reading(const std::string& path, ExitCode code) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) throw Error(code, "cannot read " + path + ": " + reason());
  return file;
}

template <class Consumer>
void read_pieces(int descriptor, const std::string& path, ExitCode code, const Consumer& consume) {
  const std::unique_ptr<char[]> buffer(new char[kPiece]);
  for (;;) {
    const ssize_t got = read_some(descriptor, buffer.get(), kPiece);
    if (got < 0) throw Error(code, "cannot read " + path + ": " + reason());
    if (got == 0) return;
    consume(std::string_view(buffer.get(), static_cast<std::size_t>(got)));
  }
}

std::string folder_of(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

// Where a write to `path` ends up once symbolic links are followed.
std::string resolve_links(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> resolved(::realpath(path.c_str(), nullptr), std::free);
  return resolved ? std::string(resolved.get()) : path;
}

// A rename would replace a device or a pipe by a plain file.
void write_in_place(const std::string& path, std::string_view bytes) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.valid() || !write_all(file.get(), bytes) || !file.close()) cannot_write(path, reason());
}

}  // namespace

std::string read_file(const std::string& path, ExitCode code) {
  const Descriptor file = open_for_reading(path, code);
  std::string bytes;
  struct stat status {};
  if (::fstat(file.get(), &status) == 0 && status.st_size > 0)
    bytes.reserve(static_cast<std::size_t>(status.st_size));
  read_pieces(file.get(), path, code, [&](std::string_view piece) { bytes.append(piece); });
  return bytes;
}

std::string read_standard_input() {
  std::string bytes;
  read_pieces(STDIN_FILENO, "standard input", ExitCode::input,
              [&](std::string_view piece) { bytes.append(piece); });
  return bytes;
}

void write_file(const std::string& path, std::string_view bytes) {
  const std::string target = resolve_links(path);
  struct stat status {};
  const bool exists = ::stat(target.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) cannot_write(path, "it is a directory");
  if (exists && !S_ISREG(status.st_mode)) return write_in_place(path, bytes);

  std::string temporary = target + ".XXXXXX";
  Descriptor file(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!file.valid()) cannot_write(path, reason());
  // mkostemp gives the owner alone access; a result gets what any new file would get.
  const mode_t mask = ::umask(0);
  ::umask(mask);
  const mode_t mode = exists ? status.st_mode & 07777U : 0666U & ~mask;
  if (::fchmod(file.get(), mode) != 0 || !write_all(file.get(), bytes) || ::fsync(file.get()) != 0 ||
      !file.close() || ::rename(temporary.c_str(), target.c_str()) != 0) {
    const std::string why = reason();
    ::unlink(temporary.c_str());
    cannot_write(path, why);
  }
}

void check_output(const std::string& path, bool overwrite) {
  if (path.empty()) throw Error(ExitCode::output, "cannot write: the output path is empty");
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) cannot_write(path, "it is a directory");
    if (!S_ISREG(status.st_mode)) return;
    if (!overwrite) cannot_write(path, "it exists, and overwrite is off");
  } else if (errno != ENOENT) {
    cannot_write(path, reason());
  } else if (::lstat(path.c_str(), &status) == 0 && !overwrite) {
    cannot_write(path, "it is a link to a file that is missing, and overwrite is off");
  }
  const std::string folder = folder_of(resolve_links(path));
  if (::access(folder.c_str(), W_OK | X_OK) != 0) cannot_write(path, "folder " + folder + ": " + reason());
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
