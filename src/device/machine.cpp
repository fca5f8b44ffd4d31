#include "device/machine.h"

#include <ATen/Context.h>
#include <ATen/ops/zeros.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <regex>

#include "base/memory.h"
#include "kernels/ops.h"

namespace lamplighter {
namespace {

constexpr const char* kLess = "a smaller batch_size, a smaller tree or dtype bf16 needs less";

bool has(const std::string& text, const char* words) {
  return text.find(words) != std::string::npos;
}

// Returns the first group of `pattern`, or "".
std::string found(const std::string& text, const char* pattern) {
  std::smatch match;
  return std::regex_search(text, match, std::regex(pattern)) ? match[1].str() : "";
}

std::string free_words() {
  const std::optional<std::int64_t> free = free_host_memory();
  return free ? ", " + format_bytes(*free) + " free" : "";
}

// Describes an out-of-memory error; "" for other errors.
std::string memory_words(const std::string& text) {
  if (has(text, "CUDA out of memory")) {
    const std::string asked = found(text, "Tried to allocate ([0-9.]+ \\w+)");
    const std::string device = found(text, "GPU ([0-9]+) has");
    const std::string total = found(text, "total capacity of ([0-9.]+ \\w+)");
    const std::string free = found(text, "of which ([0-9.]+ \\w+) is free");
    const std::string unused = found(text, "and ([0-9.]+ \\w+) is reserved by PyTorch but unallocated");
    return "out of memory" + (device.empty() ? "" : " on cuda:" + device) + ": asked for " +
           (asked.empty() ? "more than there is" : asked) +
           (free.empty() ? "" : ", " + free + " of " + total + " free") +
           (unused.empty() ? "" : " and " + unused + " in pieces") + "; " + kLess + "; or try device cpu";
  }
  for (const char* words : {"CUDA error: out of memory", "CUBLAS_STATUS_ALLOC_FAILED",
                            "CUDNN_STATUS_ALLOC_FAILED", "ALLOCATION_FAILED"}) {
    if (has(text, words)) return "out of memory on the CUDA device; " + std::string(kLess);
  }
  if (has(text, "DefaultCPUAllocator")) {
    const std::string asked = found(text, "tried to allocate ([0-9]{1,18}) bytes");
    return "out of memory: asked for " +
           (asked.empty() ? "more than there is" : format_bytes(std::stoll(asked))) + free_words() + "; " +
           kLess;
  }
  if (has(text, "std::bad_alloc")) return "out of memory" + free_words() + "; " + kLess;
  return "";
}

struct Trouble {
  const char* words;  // part of the library's message
  const char* line;
};

constexpr const char* kNoDriver = "no NVIDIA driver found; try device cpu";
constexpr const char* kOldDriver =
    "the NVIDIA driver is too old for CUDA 13 (580 or newer is needed); update it or try device cpu";
constexpr const char* kNoKernels =
    "this build has no kernels for the device: compute capability 8.0 or newer is needed (see lamplighter "
    "devices); try device cpu";
constexpr const char* kNoCuda = "this build has no CUDA kernels; try device cpu";

constexpr std::array<Trouble, 13> kTroubles{
    {{"Found no NVIDIA driver", kNoDriver},
     {"driver on your system is too old", kOldDriver},
     {"CUDA driver version is insufficient", kOldDriver},
     {"unsupported toolchain", kOldDriver},
     {"no kernel image is available", kNoKernels},
     {"device kernel image is invalid", kNoKernels},
     {"CUBLAS_STATUS_ARCH_MISMATCH", kNoKernels},
     {"without ATen_cuda library", kNoCuda},
     {"from the 'CUDA' backend", kNoCuda},
     {"no CUDA-capable device is detected", "no CUDA device found; try device cpu"},
     {"invalid device ordinal", "there is no CUDA device of this number (lamplighter devices lists them)"},
     {"No CUDA GPUs are available", "no CUDA device found; try device cpu"},
     {"busy or unavailable", "another program holds the CUDA device; wait for it or choose another device"}}};

// Describes an error of the device; "" for other errors.
std::string device_words(const std::string& text) {
  for (const Trouble& trouble : kTroubles) {
    if (has(text, trouble.words)) return trouble.line;
  }
  const std::string reason = found(text, "(?:CUDA error: |CUDA driver error: |cuDNN error: )([^\\n]+)");
  if (reason.empty()) return "";
  return "CUDA failed: " + reason + "; the state of the device is lost, so start again (nvidia-smi shows " +
         "its health)";
}

// The allocator lists no devices before CUDA is initialized.
c10::DeviceAllocator& cuda_allocator() {
  at::globalContext().lazyInitDevice(c10::kCUDA);
  return *c10::getDeviceAllocator(c10::kCUDA);
}

}  // namespace

std::optional<Error> machine_error(const std::string& text, const std::string& where) {
  const std::string before = where.empty() ? "" : where + ": ";
  const std::string memory = memory_words(text);
  if (!memory.empty()) return Error(ExitCode::memory, before + memory);
  const std::string device = device_words(text);
  if (!device.empty()) return Error(ExitCode::device, before + device);
  return std::nullopt;
}

std::optional<Error> machine_error(const std::exception& error, const std::string& where) {
  return machine_error(std::string(error.what()), where);
}

std::optional<std::int64_t> free_memory(const c10::Device& device) {
  if (!device.is_cuda()) return free_host_memory();
  c10::DeviceAllocator& allocator = cuda_allocator();
  const c10::CachingDeviceAllocator::DeviceStats stats = allocator.getDeviceStats(device.index());
  return static_cast<std::int64_t>(allocator.getMemoryInfo(device.index()).first) +
         stats.reserved_bytes[0].current - stats.allocated_bytes[0].current;
}

std::int64_t peak_memory(const c10::Device& device) {
  if (device.is_cuda()) return cuda_allocator().getDeviceStats(device.index()).reserved_bytes[0].peak;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
}

bool reset_peak_memory(const c10::Device& device) {
  if (device.is_cuda()) {
    cuda_allocator().resetPeakStats(device.index());
    return true;
  }
  std::ofstream own("/proc/self/clear_refs");
  own << 5 << std::flush;  // resets the peak resident size (proc(5))
  return own.good();
}

void require_memory(const c10::Device& device, std::int64_t bytes, std::int64_t count,
                    const std::string& what, const std::string& less) {
  const std::optional<std::int64_t> free = free_memory(device);
  if (!free || bytes <= 0 || count <= *free / bytes) return;
  const double needed = static_cast<double>(bytes) * static_cast<double>(count);
  const std::int64_t asked = needed < 9e18 ? bytes * count : std::int64_t{9'000'000'000'000'000'000};
  throw Error(ExitCode::memory,
              "out of memory on " + device.str() + ": " + what + " need " + format_bytes(asked) + ", " +
                  format_bytes(*free) + " free" +
                  (count > 1 && *free >= bytes ? "; batch_size " + std::to_string(*free / bytes) + " fits"
                                               : "; " + (less.empty() ? kLess : less)));
}

void require_kernels(const c10::Device& device) {
  if (!device.is_cuda()) return;
  with_machine_errors([&] {
    const at::Tensor one = at::zeros({1}, at::dtype(at::kLong).device(device));
    return ops::uniforms(one, one, ops::Purpose::accept, 1).cpu();
  });
}

std::string cpu_name(const std::string& root) {
  std::ifstream cpus(root + "/proc/cpuinfo");
  for (std::string line; std::getline(cpus, line);) {
    const std::size_t colon = line.find(':');
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos)
      return line.substr(std::min(line.size(), colon + 2));
  }
  return "";
}

int count_cuda_devices() {
  return at::hasCUDA() ? static_cast<int>(at::detail::getCUDAHooks().deviceCount()) : 0;
}

std::string why_no_cuda() {
  try {
    at::globalContext().lazyInitDevice(c10::kCUDA);
  } catch (const std::exception& error) {
    if (const std::optional<Error> known = machine_error(error)) return known->what();
    return "no CUDA device found; try device cpu";
  }
  return "no CUDA device found; try device cpu";
}

}  // namespace lamplighter
