#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <exception>
#include <optional>
#include <string>

#include "lamplighter/error.h"

// Memory and devices of the machine, and the errors that Torch, CUDA and the C++ library report about them.
namespace lamplighter {

// Translates a library's message about exhausted memory to Error(memory), with requested and free bytes, and
// about an unusable device to Error(device). Other messages give nothing. The parameter is text because
// TorchScript wraps exceptions: it keeps their messages but not their types. `where` becomes the message's
// prefix.
std::optional<Error> machine_error(const std::string& text, const std::string& where = "");
std::optional<Error> machine_error(const std::exception& error, const std::string& where = "");

// Runs f() and throws machine_error() in place of these exceptions.
template <class F>
auto with_machine_errors(F f) {
  try {
    return f();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    if (const std::optional<Error> translated = machine_error(error)) throw *translated;
    throw;
  }
}

// Bytes that a device can still allocate. On CUDA this includes unused memory in Torch's allocator.
std::optional<std::int64_t> free_memory(const c10::Device& device);
// Peak bytes of tensors and of the CUDA library's allocator; on the CPU, of the process.
std::int64_t peak_memory(const c10::Device& device);
// Restarts peak_memory from the present use. Returns false where the system does not allow it.
bool reset_peak_memory(const c10::Device& device);

// Throws Error(memory) when the device cannot hold `count` items of `bytes` each. `what` names them. `less`
// is the hint what would need less; empty means the usual flags.
void require_memory(const c10::Device& device, std::int64_t bytes, std::int64_t count,
                    const std::string& what, const std::string& less = "");

// Model of the CPU by /proc/cpuinfo of the system whose root is `root`; empty where it is not known.
std::string cpu_name(const std::string& root = "");

// Number of CUDA devices.
int count_cuda_devices();

// Throws Error(device) when this build's kernels do not run on the device. Initializes CUDA.
void require_kernels(const c10::Device& device);
// Says in one line why no CUDA device can be used.
std::string why_no_cuda();

}  // namespace lamplighter
