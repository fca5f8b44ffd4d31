#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <exception>
#include <optional>
#include <string>

#include "lamplighter/error.h"

// What the machine has, and what Torch, CUDA and the C++ library say when it is not enough.
namespace lamplighter {

// The one line for a message that tells of a full memory (Error(memory), with the bytes asked and free) or of
// a device that cannot do its work (Error(device)); nothing for all other messages. `text` may be wrapped by
// TorchScript, which keeps the words of an exception but not its type. `where` comes first when it is given.
std::optional<Error> machine_error(const std::string& text, const std::string& where = "");
std::optional<Error> machine_error(const std::exception& error, const std::string& where = "");

// f(), with the exceptions above as Error.
template <class F>
auto with_machine_errors(F f) {
  try {
    return f();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    if (const std::optional<Error> told = machine_error(error)) throw *told;
    throw;
  }
}

// Bytes that can still be allocated on a device; on CUDA with what Torch's allocator holds unused.
std::optional<std::int64_t> free_memory(const c10::Device& device);
// Most bytes that tensors and the CUDA library's allocator held at once; on the CPU: that the process held.
std::int64_t peak_memory(const c10::Device& device);
// Begins peak_memory anew at what is held; false where the system does not let it.
bool reset_peak_memory(const c10::Device& device);

// Throws Error(memory) when `count` pieces of `bytes` each, named `what`, cannot be held on the device;
// `less`: what would need less, a hint of the usual flags when it is empty.
void require_memory(const c10::Device& device, std::int64_t bytes, std::int64_t count,
                    const std::string& what, const std::string& less = "");

// CUDA devices that there are.
int count_cuda_devices();

// Throws Error(device) when kernels of this build do not run on it; the first use of a CUDA device.
void require_kernels(const c10::Device& device);
// Why no CUDA device can be used, as one line.
std::string why_no_cuda();

}  // namespace lamplighter
