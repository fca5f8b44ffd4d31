// The program `lamplighter`. It prints help and the like from texts that are compiled in, because loading the
// engine's libraries takes about 0.3 s. For all other work it sets the options of the C library's allocator
// and of OpenMP, and replaces itself with the engine.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "base/descriptor.h"
#include "tools/launcher_texts.h"  // kKnownTexts: command lines and what they print

namespace {

constexpr int kLeastStack = 256;                                 // kB
constexpr int kInputCode = 3, kMemoryCode = 6, kOutputCode = 7;  // ExitCode::input, memory, output

// Returns the compiled-in text that the command line asks for, or nullptr.
const char* known_text(int count, char** arguments) {
  std::string command;
  for (int i = 1; i < count; ++i) command += (i == 1 ? "" : " ") + std::string(arguments[i]);
  if (count > 3 || (count == 2 && command.find(' ') != std::string::npos)) return nullptr;
  for (const KnownText& known : kKnownTexts) {
    if (command == known.command) return known.text;
  }
  return nullptr;
}

int print(const char* text) {
  if (std::puts(text) >= 0 && std::fflush(stdout) == 0) return 0;
  std::fprintf(stderr, "lamplighter: error: cannot write to standard output: %s\n", std::strerror(errno));
  return kOutputCode;
}

std::string engine_path() {
  std::array<char, PATH_MAX> self{};
  const ssize_t length = ::readlink("/proc/self/exe", self.data(), self.size());
  const std::string_view path(self.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
  return std::string(path.substr(0, path.rfind('/') + 1)) + "lamplighter-engine";
}

// Options of the C library's allocator, which reads them when a process starts. Huge pages save a sixth of
// the time of an image. Keeping freed memory for the next image saves a fifth of the time of the image
// decoder; the largest tensors are returned, because they would fragment the heap.
constexpr const char* kMemory =
    "glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=16777216:glibc.malloc.trim_threshold=67108864";

// How often a thread of Torch's own operators looks for work before it sleeps: some 0.2 ms. By default it is
// some 5 ms, in which it takes the processor from the engine's threads and from other programs.
constexpr const char* kSpins = "10000";

// Whether the address space or the data of this process are limited (ulimit -v, -d).
bool is_limited() {
  for (const auto resource : {RLIMIT_AS, RLIMIT_DATA}) {
    rlimit limit{};
    if (::getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) return true;
  }
  return false;
}

// Gives the engine a stack (ulimit -s): with less than some 128 kB it would end without a word. False where
// the limit cannot be raised.
bool has_stack() {
  constexpr rlim_t kLeast = kLeastStack << 10, kUsual = 8 << 20;
  rlimit limit{};
  if (::getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= kLeast) return true;
  limit.rlim_cur = std::min(limit.rlim_max, kUsual);
  return limit.rlim_cur >= kLeast && ::setrlimit(RLIMIT_STACK, &limit) == 0;
}

// Whether the current folder exists. Without one, Torch's libraries end the process before its main function.
bool has_folder() {
  char* folder = ::getcwd(nullptr, 0);
  std::free(folder);
  return folder != nullptr || errno != ENOENT;
}

// The messages of a program that prints its version, and how it ended. Nothing when it cannot be started.
struct Trial {
  std::string messages;
  bool fails = false;
};
std::optional<Trial> try_version(const std::string& program) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit no_core{};
    ::setrlimit(RLIMIT_CORE, &no_core);
    ::dup2(ends[1], STDERR_FILENO);
    const int nothing = ::open("/dev/null", O_WRONLY);
    ::dup2(nothing, STDOUT_FILENO);
    ::execl(program.c_str(), program.c_str(), "--version", nullptr);
    ::_exit(0);  // the real start says why
  }
  ::close(ends[1]);
  Trial trial;
  std::array<char, 4096> piece{};
  for (ssize_t got = 0; child > 0 && (got = ::read(ends[0], piece.data(), piece.size())) > 0;)
    trial.messages.append(piece.data(), static_cast<std::size_t>(got));
  ::close(ends[0]);
  int status = 0;
  if (child < 0) return std::nullopt;
  // A parent that ignores SIGCHLD leaves no status.
  const bool has_status = ::waitpid(child, &status, 0) == child;
  trial.fails = !has_status || !WIFEXITED(status) || WEXITSTATUS(status) != 0;
  return trial;
}

// Whether the libraries of the engine do not fit into the limits of this process: they would end it before
// its main function, with messages of their own.
bool lacks_memory(const std::string& engine) {
  if (!is_limited()) return false;
  const std::optional<Trial> trial = try_version(engine);
  if (!trial || !trial->fails) return false;
  for (const char* words : {"bad_alloc", "failed to map", "cannot map", "annot allocate", "out of memory"}) {
    if (trial->messages.find(words) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

int main(int count, char** arguments) {
  lamplighter::reserve_standard_descriptors();
  if (const char* text = known_text(count, arguments)) return print(text);
  if (!has_folder()) {
    std::fputs("lamplighter: error: the current folder has been removed; change to another one\n", stderr);
    return kInputCode;
  }
  const std::string engine = engine_path();
  ::setenv("GLIBC_TUNABLES", kMemory, 0);
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) ::setenv("GOMP_SPINCOUNT", kSpins, 0);
  if (!has_stack()) {
    std::fprintf(
        stderr,
        "lamplighter: error: out of memory: the limit of the stack (ulimit -s) is below %d kB; raise it\n",
        kLeastStack);
    return kMemoryCode;
  }
  if (lacks_memory(engine)) {
    std::fputs(
        "lamplighter: error: out of memory: the limits of this process (ulimit -v, -d) leave no room for the "
        "program's libraries, which take some 600 MB of address space; raise them\n",
        stderr);
    return kMemoryCode;
  }
  ::execv(engine.c_str(), arguments);
  std::fprintf(stderr, "lamplighter: error: cannot start %s: %s; build or install it again\n", engine.c_str(),
               std::strerror(errno));
  return 1;
}
