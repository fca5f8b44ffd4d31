#include "device/placement.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include "base/message.h"
#include "base/suggestion.h"
#include "device/machine.h"
#include "kernels/attend/rounded_cache.h"
#include "kernels/common/isa.h"
#include "lamplighter/error.h"

namespace lamplighter {
namespace {

// Returns the first CUDA device if it works, else the CPU.
c10::Device best_device(const LogCallback& note) {
  if (!at::hasCUDA()) return c10::kCPU;
  const c10::Device first(c10::kCUDA, 0);
  try {
    require_kernels(first);
    return first;
  } catch (const Error& error) {
    if (note) note(std::string("the CPU is used: ") + error.what());
    return c10::kCPU;
  }
}

c10::Device resolve_device(const std::string& name, const LogCallback& note) {
  if (name == "cpu") return c10::kCPU;
  if (name == "auto") return best_device(note);
  c10::Device device = c10::kCPU;
  try {
    device = c10::Device(name);
  } catch (const c10::Error&) {
    throw Error(ExitCode::usage, "device: got " + quote(name) + ", expected auto, cpu, cuda or cuda:N");
  }
  if (!device.is_cuda()) {
    throw Error(ExitCode::usage, "device: got " + quote(name) + ", expected auto, cpu, cuda or cuda:N");
  }
  const int count = count_cuda_devices();
  const int index = device.has_index() ? device.index() : 0;
  if (count == 0) throw Error(ExitCode::device, "device " + name + ": " + why_no_cuda());
  if (index >= count) {
    throw Error(ExitCode::device, "device " + name +
                                      ": no CUDA device of this number, expected cuda:0 to cuda:" +
                                      std::to_string(count - 1) + " (see lamplighter devices)");
  }
  device = {c10::kCUDA, static_cast<c10::DeviceIndex>(index)};
  require_kernels(device);
  return device;
}

// Checks LAMPLIGHTER_ISA early; otherwise a mistake shows only when the first kernel runs.
void check_isa() {
  try {
    active_isa();
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    throw Error(ExitCode::usage, text.substr(0, text.find('\n')));
  }
}

const char* name_of(c10::ScalarType dtype) {
  return dtype == c10::kFloat ? "fp32" : dtype == c10::kBFloat16 ? "bf16" : "fp16";
}

}  // namespace

Placement resolve_placement(const RuntimeOptions& options) {
  constexpr int kMaxThreads = 1024;
  if (options.threads < 0 || options.threads > kMaxThreads) {
    throw Error(ExitCode::usage, "threads: got " + std::to_string(options.threads) + ", expected 0 to " +
                                     std::to_string(kMaxThreads));
  }
  if (options.batch_size < 1) {
    throw Error(ExitCode::usage,
                "batch_size: got " + std::to_string(options.batch_size) + ", expected 1 or more");
  }
  Placement placement;
  placement.device = resolve_device(options.device, options.note);
  const bool cuda = placement.device.is_cuda();
  // Turns TF32 off, whatever the environment says, so that fp32 results match the results of the CPU.
  at::globalContext().setAllowTF32CuDNN(false);
  at::globalContext().setAllowTF32CuBLAS(false);
  if (options.dtype == "auto" || options.dtype == "bf16") {
    placement.dtype = c10::kBFloat16;
  } else if (options.dtype == "fp32") {
    placement.dtype = c10::kFloat;
  } else if (options.dtype == "fp16" && cuda) {
    placement.dtype = c10::kHalf;
  } else if (options.dtype == "int8" || options.dtype == "int4") {
    placement.dtype = c10::kBFloat16;
    placement.weight_bits = options.dtype == "int8" ? 8 : 4;
  } else {
    throw Error(ExitCode::usage, "dtype: got " + quote(options.dtype) + " on " + placement.device.str() +
                                     ", expected " + list_of(dtype_names()) + "; fp16 needs CUDA");
  }
  if (options.cache_dtype != "auto" && options.cache_dtype != "int8") {
    throw Error(ExitCode::usage, "cache_dtype: got " + quote(options.cache_dtype) + ", expected " +
                                     list_of(cache_dtype_names()));
  }
  placement.rounded_cache = options.cache_dtype == "int8";
  if (!cuda) check_isa();
  if (options.threads > 0) at::set_num_threads(options.threads);
  return placement;
}

int stored_bits(const ModuleEntry& entry) {
  return entry.dtype == "int8" ? 8 : entry.dtype == "int4" ? 4 : 16;
}

Placement resolve_placement(const RuntimeOptions& options, const Manifest& manifest) {
  RuntimeOptions wanted = options;
  const auto refuse = [&](const std::string& role, const ModuleEntry& entry, const std::string& expected) {
    throw Error(ExitCode::usage, "dtype: got " + quote(options.dtype) + ", expected " + expected +
                                     ": the bundle stores " + role + " in " + entry.dtype);
  };
  const auto target = manifest.modules.find("target");
  if (target != manifest.modules.end() && stored_bits(target->second) != 16) {
    if (wanted.dtype == "auto") wanted.dtype = target->second.dtype;
    if (wanted.dtype != target->second.dtype)
      refuse("its target", target->second, "auto or " + target->second.dtype);
  }
  // Continuous tokens need fp32: an error of 1e-4 in a mean changes the ratio of densities by 5 %.
  if (manifest.is_continuous()) {
    if (wanted.dtype == "auto") wanted.dtype = "fp32";
    if (wanted.dtype != "fp32")
      throw Error(ExitCode::usage, "dtype: got " + quote(options.dtype) +
                                       ", expected auto or fp32: the tokens of " + manifest.name +
                                       " are continuous");
    if (wanted.cache_dtype != "auto")
      throw Error(ExitCode::usage, "cache_dtype: got " + quote(options.cache_dtype) +
                                       ", expected auto: " + manifest.name + " has no cache");
  }
  const Placement placement = resolve_placement(wanted);
  if (placement.dtype == c10::kBFloat16) return placement;
  for (const auto& [role, entry] : manifest.modules) {
    if (stored_bits(entry) != 16) refuse("its " + role, entry, "auto, bf16, int8 or int4");
  }
  for (const auto& [name, drafter] : manifest.all_drafters()) {
    if (stored_bits(drafter.module) != 16)
      refuse("drafter " + name, drafter.module, "auto, bf16, int8 or int4");
  }
  return placement;
}

std::vector<std::string> dtype_names() {
  return {"auto", "fp32", "bf16", "int8", "int4", "fp16"};
}

std::vector<std::string> cache_dtype_names() {
  return {"auto", "int8"};
}

std::string dtype_name(const Placement& placement) {
  if (placement.weight_bits != 16) return "int" + std::to_string(placement.weight_bits);
  return name_of(placement.dtype);
}

std::string cache_dtype_name(const Placement& placement) {
  return placement.rounded_cache ? "int8" : name_of(placement.dtype);
}

std::int64_t row_bytes(const CacheEntry& cache, const Placement& placement) {
  const std::int64_t head =
      placement.rounded_cache ? cache.head_dim + kRowScaleBytes
                              : cache.head_dim * static_cast<std::int64_t>(c10::elementSize(placement.dtype));
  return 2 * cache.layers * cache.kv_heads * head;
}

}  // namespace lamplighter
