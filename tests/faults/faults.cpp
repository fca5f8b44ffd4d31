// A library for LD_PRELOAD that injects faults of disk, memory and process. FAULT=CALL:N:WHAT acts on the
// N-th call (from 1; N+: all from the N-th on, N-M: up to the M-th) of rename, link, fsync, fdatasync, write
// (except standard streams), posix_memalign (Torch's tensors) or new (the program itself). WHAT is `before`
// or `after` (kills the process there), `slow` (waits a tenth of a second) or the number of the error to
// return; any number fails an allocation. FAULT=clock_gettime:1+:fast turns a minute into a second.
#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

struct Fault {
  char call[32] = "", what[16] = "";
  long first = 0, last = 0;

  Fault() {
    const char* text = std::getenv("FAULT");
    char count[32] = "";
    if (text == nullptr || std::sscanf(text, "%31[^:]:%31[^:]:%15s", call, count, what) != 3) return;
    char* end = nullptr;
    first = std::strtol(count, &end, 10);
    last = *end == '+' ? LONG_MAX : *end == '-' ? std::atol(end + 1) : first;
  }
};

[[noreturn]] void die() {
  ::kill(::getpid(), SIGKILL);
  for (;;) ::pause();
}

const Fault& asked() {
  static const Fault fault;
  return fault;
}

// Runs a call or its fault. `real` returns 0 or more on success.
template <class Real>
auto meet(const char* call, const Real& real) -> decltype(real()) {
  const Fault& fault = asked();
  static std::atomic<long> calls{0};
  if (std::strcmp(fault.call, call) != 0) return real();
  const long number = ++calls;
  if (number < fault.first || number > fault.last) return real();
  if (std::strcmp(fault.what, "before") == 0) die();
  if (std::strcmp(fault.what, "after") == 0) {
    real();
    die();
  }
  if (std::strcmp(fault.what, "slow") == 0) {
    ::usleep(100'000);
    return real();
  }
  errno = std::atoi(fault.what);
  return -1;
}

// Memory range of the program without its libraries.
struct Range {
  std::uintptr_t begin = 0, end = 0;

  bool holds(const void* address) const {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    return at >= begin && at < end;
  }
};

const Range& program() {
  static const Range range = [] {
    Range found;
    ::dl_iterate_phdr(  // lists the program first
        [](dl_phdr_info* object, std::size_t, void* out) {
          for (int i = 0; i < object->dlpi_phnum; ++i) {
            const auto& part = object->dlpi_phdr[i];
            if (part.p_type == PT_LOAD && (part.p_flags & PF_X) != 0)
              *static_cast<Range*>(out) = {object->dlpi_addr + part.p_vaddr,
                                           object->dlpi_addr + part.p_vaddr + part.p_memsz};
          }
          return 1;
        },
        &found);
    return found;
  }();
  return range;
}

std::atomic<bool> begun{false};  // set when the program installs its signal handlers, its first action

template <class F>
F* next(const char* name) {
  return reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

int rename(const char* from, const char* to) {
  static auto* const real = next<int(const char*, const char*)>("rename");
  return meet("rename", [&] { return real(from, to); });
}

int link(const char* from, const char* to) {
  static auto* const real = next<int(const char*, const char*)>("link");
  return meet("link", [&] { return real(from, to); });
}

int fsync(int file) {
  static auto* const real = next<int(int)>("fsync");
  return meet("fsync", [&] { return real(file); });
}

int fdatasync(int file) {
  static auto* const real = next<int(int)>("fdatasync");
  return meet("fdatasync", [&] { return real(file); });
}

ssize_t write(int file, const void* bytes, size_t size) {
  static auto* const real = next<ssize_t(int, const void*, size_t)>("write");
  if (file <= STDERR_FILENO) return real(file, bytes, size);
  return meet("write", [&] { return real(file, bytes, size); });
}

int clock_gettime(clockid_t clock, timespec* time) {
  static auto* const real = next<int(clockid_t, timespec*)>("clock_gettime");
  const int result = real(clock, time);
  if (result != 0 || clock != CLOCK_MONOTONIC || std::strcmp(asked().call, "clock_gettime") != 0)
    return result;
  static const timespec begin = *time;
  constexpr long kSecond = 1'000'000'000;
  const long passed = (time->tv_sec - begin.tv_sec) * kSecond + time->tv_nsec - begin.tv_nsec;
  time->tv_sec = begin.tv_sec + 60 * passed / kSecond;
  time->tv_nsec = 60 * passed % kSecond;
  return result;
}

int sigaction(int number, const struct sigaction* action, struct sigaction* before) {
  static auto* const real = next<int(int, const struct sigaction*, struct sigaction*)>("sigaction");
  if (number == SIGINT) begun = true;
  return real(number, action, before);
}

int posix_memalign(void** memory, size_t alignment, size_t size) {
  static auto* const real = next<int(void**, size_t, size_t)>("posix_memalign");
  // Kernels from libraries ignore the result; Torch's allocator checks it.
  Dl_info caller;
  const bool is_tensor = std::strcmp(asked().call, "posix_memalign") == 0 &&
                         ::dladdr(__builtin_return_address(0), &caller) != 0 &&
                         std::strstr(caller.dli_fname, "libc10") != nullptr;
  if (!is_tensor) return real(memory, alignment, size);
  return meet("posix_memalign", [&] { return real(memory, alignment, size); }) == 0 ? 0 : ENOMEM;
}
}

// Counts allocations of the program itself, after main has begun; libraries handle their own.
void* operator new(std::size_t size) {
  const bool is_own =
      begun && std::strcmp(asked().call, "new") == 0 && program().holds(__builtin_return_address(0));
  void* memory = nullptr;
  const auto allocate = [&] {
    memory = std::malloc(size == 0 ? 1 : size);
    return memory == nullptr ? -1 : 0;
  };
  if ((is_own ? meet("new", allocate) : allocate()) != 0) throw std::bad_alloc();
  return memory;
}
