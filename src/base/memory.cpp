#include "base/memory.h"

#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <utility>

namespace lamplighter {

std::optional<std::int64_t> free_host_memory() {
  std::optional<std::int64_t> free;
  std::ifstream system("/proc/meminfo");
  std::string name, unit;
  for (std::int64_t kib = 0; system >> name >> kib;) {
    if (name == "MemAvailable:" || name == "SwapFree:") free = free.value_or(0) + kib * 1024;
    std::getline(system, unit);
  }
  // Fields, in pages: total, resident, shared, code, 0, data and stack.
  std::array<std::int64_t, 6> used{};
  std::ifstream own("/proc/self/statm");
  for (std::int64_t& pages : used) own >> pages;
  if (!own) return free;
  for (const auto& [kind, pages] : {std::pair{RLIMIT_AS, used[0]}, std::pair{RLIMIT_DATA, used[5]}}) {
    rlimit limit{};
    if (getrlimit(kind, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) continue;
    const std::int64_t left = static_cast<std::int64_t>(limit.rlim_cur) - pages * sysconf(_SC_PAGESIZE);
    free = std::max<std::int64_t>(0, std::min(free.value_or(left), left));
  }
  return free;
}

void release_free_memory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

void share_heaps() {
#ifdef __GLIBC__
  constexpr int heaps = 4;
  if (std::getenv("MALLOC_ARENA_MAX") == nullptr) mallopt(M_ARENA_MAX, heaps);
#endif
}

std::string format_bytes(std::int64_t bytes) {
  constexpr std::array<const char*, 5> kUnits{"KiB", "MiB", "GiB", "TiB", "PiB"};
  if (bytes < 1024) return std::to_string(bytes) + " B";
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  for (; value >= 1023.995 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  char text[32];
  std::snprintf(text, sizeof text, "%.2f %s", value, kUnits[unit]);
  return text;
}

}  // namespace lamplighter
