// Times every kernel and copy of a program by CUPTI, in captured CUDA graphs, too. The program needs
// no change; scripts/kernel_table.py makes a table of the result.
//
//   g++ -O2 -std=c++17 -shared -fPIC -I/usr/local/cuda/include -o kernel_times.so scripts/kernel_times.cpp
//   -ldl LD_PRELOAD=$PWD/kernel_times.so CUDA_INJECTION64_PATH=$PWD/kernel_times.so KERNEL_TIMES=FILE PROGRAM
//   ...
//
// FILE gets one line for each node of a graph, with times in microseconds, in the order in which the nodes
// ran; graph 0 stands for work outside graphs. CUPTI is opened at run time: CUPTI_LIBRARY names its file.
// Where there is no device or no CUPTI, the library says so and the program runs on.
#include <cupti.h>
#include <cxxabi.h>
#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

struct Record {
  uint64_t start, end, node;
  uint32_t graph, name, grid, block;
};

constexpr size_t kMostRecords = 4'000'000;
std::mutex mutex;
std::vector<Record> records;
std::unordered_map<std::string, uint32_t> numbers;
std::vector<std::string> names;
void* cupti = nullptr;
bool active = false, written = false;

template <class Function>
Function find(const char* name) {
  return reinterpret_cast<Function>(dlsym(cupti, name));
}
#define CUPTI(name) find<decltype(&(name))>(#name)

void say(const std::string& line) {
  std::fprintf(stderr, "kernel_times: %s\n", line.c_str());
}

uint32_t number_of(const char* name) {
  const auto [entry, added] = numbers.emplace(name != nullptr ? name : "?", uint32_t(names.size()));
  if (added) names.push_back(entry->first);
  return entry->second;
}

void CUPTIAPI give_buffer(uint8_t** buffer, size_t* size, size_t* most) {
  constexpr size_t kBytes = size_t{8} << 20;
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(16, kBytes));
  *size = *buffer != nullptr ? kBytes : 0;
  *most = 0;
}

void keep(const CUpti_Activity& activity) {
  if (activity.kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL || activity.kind == CUPTI_ACTIVITY_KIND_KERNEL) {
    const auto& kernel = reinterpret_cast<const CUpti_ActivityKernel10&>(activity);
    const auto product = [](int32_t x, int32_t y, int32_t z) {
      return uint32_t(x) * uint32_t(y) * uint32_t(z);
    };
    records.push_back({kernel.start, kernel.end, kernel.graphNodeId, kernel.graphId, number_of(kernel.name),
                       product(kernel.gridX, kernel.gridY, kernel.gridZ),
                       product(kernel.blockX, kernel.blockY, kernel.blockZ)});
  } else if (activity.kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
    const auto& copy = reinterpret_cast<const CUpti_ActivityMemcpy6&>(activity);
    records.push_back({copy.start, copy.end, copy.graphNodeId, copy.graphId, number_of("[copy]"), 0, 0});
  } else if (activity.kind == CUPTI_ACTIVITY_KIND_MEMSET) {
    const auto& fill = reinterpret_cast<const CUpti_ActivityMemset4&>(activity);
    records.push_back({fill.start, fill.end, fill.graphNodeId, fill.graphId, number_of("[fill]"), 0, 0});
  }
}

void CUPTIAPI take_buffer(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  const std::lock_guard<std::mutex> guard(mutex);
  const auto next = CUPTI(cuptiActivityGetNextRecord);
  CUpti_Activity* activity = nullptr;
  while (valid > 0 && records.size() < kMostRecords && next(buffer, valid, &activity) == CUPTI_SUCCESS) {
    keep(*activity);
  }
  std::free(buffer);
}

// The name of a kernel without what all of them share, for a field in quotes.
std::string readable(const std::string& mangled) {
  int status = 0;
  char* text = abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status);
  std::string name = status == 0 ? text : mangled;
  std::free(text);
  for (const char* part : {"(anonymous namespace)::", "lamplighter::", "at::native::", "void "}) {
    for (size_t at = name.find(part); at != std::string::npos; at = name.find(part)) {
      name.erase(at, std::strlen(part));
    }
  }
  std::replace(name.begin(), name.end(), '"', '\'');
  return name.substr(0, 150);
}

struct Node {
  Record last{};
  uint64_t count = 0;
  double sum = 0, least = 1e30, gaps = 0;  // nanoseconds; a gap is negative where kernels overlap
};

// By graph, then by node; outside graphs by name and grid.
std::map<uint32_t, std::map<uint64_t, Node>> summarise() {
  std::sort(records.begin(), records.end(),
            [](const Record& a, const Record& b) { return a.start < b.start; });
  std::map<uint32_t, std::map<uint64_t, Node>> graphs;
  uint64_t before = 0;
  for (const Record& record : records) {
    const uint64_t outside = uint64_t{record.name} << 32 | record.grid;
    Node& node = graphs[record.graph][record.graph != 0 ? record.node : outside];
    const auto time = double(record.end - record.start);
    node.last = record;
    ++node.count;
    node.sum += time;
    node.least = std::min(node.least, time);
    // A pause between two measurements is no gap.
    if (before != 0) node.gaps += std::clamp(double(int64_t(record.start - before)), -1e5, 1e5);
    before = std::max(before, record.end);
  }
  return graphs;
}

void write_lines(std::FILE* file) {
  std::fprintf(file, "graph,name,grid,block,count,mean_us,least_us,gap_us\n");
  for (const auto& [graph, nodes] : summarise()) {
    std::vector<const Node*> order;
    for (const auto& [key, node] : nodes) order.push_back(&node);
    std::sort(order.begin(), order.end(),
              [](const Node* a, const Node* b) { return a->last.start < b->last.start; });
    for (const Node* node : order) {
      const double each = 1000 * double(node->count);
      std::fprintf(file, "%u,\"%s\",%u,%u,%llu,%.3f,%.3f,%.3f\n", graph,
                   readable(names[node->last.name]).c_str(), node->last.grid, node->last.block,
                   static_cast<unsigned long long>(node->count), node->sum / each, node->least / 1000,
                   node->gaps / each);
    }
  }
}

void finish() {
  if (!active || written) return;
  written = true;
  CUPTI(cuptiActivityFlushAll)(1);
  const std::lock_guard<std::mutex> guard(mutex);
  const char* named = std::getenv("KERNEL_TIMES");
  const std::string to = named != nullptr ? named : "kernel_times.csv";
  std::FILE* file = std::fopen(to.c_str(), "w");
  if (file == nullptr) return say("cannot write " + to);
  write_lines(file);
  std::fclose(file);
  const char* cut = records.size() >= kMostRecords ? ", the first ones of more" : "";
  say(std::to_string(records.size()) + " kernels and copies in " + to + cut);
}

bool open_cupti() {
  const char* named = std::getenv("CUPTI_LIBRARY");
  for (const char* name : {named, "libcupti.so.13", "libcupti.so", "/usr/local/cuda/lib64/libcupti.so.13",
                           "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so"}) {
    if (name != nullptr) cupti = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
    if (cupti != nullptr) return true;
  }
  say(std::string("no CUPTI: ") + dlerror());
  return false;
}

bool enable(CUpti_ActivityKind kind, const char* what) {
  const CUptiResult result = CUPTI(cuptiActivityEnable)(kind);
  if (result == CUPTI_SUCCESS) return true;
  const char* reason = "unknown error";
  CUPTI(cuptiGetResultString)(result, &reason);
  say(std::string(what) + " are not timed: " + reason);
  return false;
}

}  // namespace

// The driver calls it when a program begins to use it.
extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  if (active || !open_cupti()) return 1;
  if (CUPTI(cuptiActivityRegisterCallbacks)(give_buffer, take_buffer) != CUPTI_SUCCESS) {
    say("CUPTI takes no callbacks");
    return 1;
  }
  active = enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, "kernels");
  if (active) {
    enable(CUPTI_ACTIVITY_KIND_MEMCPY, "copies");
    enable(CUPTI_ACTIVITY_KIND_MEMSET, "fills");
    std::atexit(finish);
  }
  return 1;
}

// The engine ends without handlers of atexit, so the library takes over how a program ends.
extern "C" __attribute__((visibility("default"), noreturn)) void _Exit(int code) {
  finish();
  std::fflush(nullptr);
  ::syscall(SYS_exit_group, code);
  __builtin_unreachable();
}
extern "C" __attribute__((visibility("default"), noreturn)) void _exit(int code) {
  _Exit(code);
}
