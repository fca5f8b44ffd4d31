#include "device/machine.h"

#include <ATen/ops/empty.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <new>

#include "base/memory.h"
#include "tests/error_of.h"

namespace lamplighter {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Code and message of the translated error; 0 and "" when the text is not translated.
std::pair<int, std::string> translated(const std::string& text, const std::string& where = "") {
  const std::optional<Error> error = machine_error(text, where);
  return error ? std::pair<int, std::string>{static_cast<int>(error->code()), error->what()}
               : std::pair<int, std::string>{0, ""};
}

// Torch 2.11's message, wrapped by TorchScript.
constexpr const char* kFull =
    "The following operation failed in the TorchScript interpreter.\n"
    "Traceback of TorchScript (most recent call last):\n"
    "  File \"<string>\", line 12, in forward\n"
    "    h = ops.linear(h, self.w13_0, 22016)\n"
    "        ~~~~~~~~~~ <--- HERE\n"
    "RuntimeError: CUDA out of memory. Tried to allocate 20.50 GiB. GPU 1 has a total capacity of 79.25 GiB "
    "of which 1.31 GiB is free. Including non-PyTorch memory, this process has 77.90 GiB memory in use. Of "
    "the allocated memory 76.10 GiB is allocated by PyTorch, and 412.38 MiB is reserved by PyTorch but "
    "unallocated. If reserved but unallocated memory is large try setting "
    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.\n";

TEST(MachineError, FullDeviceHasTheNumbersAndTheOptions) {
  const auto [code, line] = translated(kFull, "target.forward");
  EXPECT_EQ(code, 6);
  EXPECT_EQ(line,
            "target.forward: out of memory on cuda:1: asked for 20.50 GiB, 1.31 GiB of 79.25 GiB free and "
            "412.38 MiB in pieces; a smaller batch_size, a smaller tree or dtype bf16 needs less; or "
            "try device cpu");
  EXPECT_EQ(translated("CUDA out of memory. Tried to allocate more than 1EB memory.").first, 6);
  for (const char* text :
       {"CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported at some other API "
        "call, so the stacktrace below might be incorrect.\n",
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"}) {
    EXPECT_EQ(translated(text).first, 6) << text;
  }
}

TEST(MachineError, FullHostMemory) {
  const auto [code, line] = translated(
      "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you "
      "tried to allocate 3221225472 bytes. Error code 12 (Cannot allocate memory)");
  EXPECT_EQ(code, 6);
  EXPECT_THAT(line, AllOf(HasSubstr("asked for 3.00 GiB, "), HasSubstr(" free; "), HasSubstr("batch_size"),
                          Not(HasSubstr("alloc_cpu"))));
  EXPECT_EQ(machine_error(std::bad_alloc())->code(), ExitCode::memory);
}

// A real failure of the allocator.
TEST(MachineError, KnowsTheAllocator) {
  try {
    at::empty({std::int64_t{1} << 50}, at::kByte);
    FAIL() << "the allocation of a pebibyte succeeded";
  } catch (const std::exception& error) {
    const std::optional<Error> translation = machine_error(error, "cache");
    ASSERT_TRUE(translation);
    EXPECT_EQ(translation->code(), ExitCode::memory);
    EXPECT_THAT(translation->what(), HasSubstr("cache: out of memory: asked for 1.00 PiB"));
  }
}

TEST(MachineError, DevicesThatCannotWork) {
  const std::string tail =
      "\nSearch for `cudaErrorX' in https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html "
      "for more information.\nCUDA kernel errors might be asynchronously reported at some other API call.\n";
  for (const auto& [text, words] : std::vector<std::pair<std::string, std::string>>{
           {"Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU", "no NVIDIA "},
           {"The NVIDIA driver on your system is too old (found version 12040). Please update", "too old"},
           {"CUDA error: CUDA driver version is insufficient for CUDA runtime version" + tail, "too old"},
           {"CUDA error: the provided PTX was compiled with an unsupported toolchain." + tail, "too old"},
           {"CUDA error: no kernel image is available for execution on the device" + tail, "8.0 or newer"},
           {"CUDA error: invalid device ordinal" + tail, "lamplighter devices"},
           {"CUDA error: CUDA-capable device(s) is/are busy or unavailable" + tail, "another program"},
           {"Cannot initialize CUDA without ATen_cuda library. PyTorch splits its backend",
            "no CUDA kernels"},
           {"Could not run 'lamplighter::attend' with arguments from the 'CUDA' backend.", "no CUDA kernels"},
           {"CUDA error: an illegal memory access was encountered" + tail,
            "CUDA failed: an illegal memory access was encountered;"},
           {"CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasGemmEx(...)`",
            "CUDA failed: CUBLAS_STATUS_EXECUTION_FAILED"}}) {
    const auto [code, line] = translated("RuntimeError: " + text, "target");
    EXPECT_EQ(code, 5) << text;
    EXPECT_THAT(line, AllOf(HasSubstr("target: "), HasSubstr(words), Not(HasSubstr("\n")))) << text;
  }
}

TEST(MachineError, LeavesOtherMessagesAlone) {
  for (const char* text : {"", "shape '[2, 3]' is invalid for input of size 5", "linear: got 3 features",
                           "Could not run 'lamplighter::attend' with arguments from the 'Meta' backend."}) {
    EXPECT_EQ(translated(text).first, 0) << text;
  }
  EXPECT_THROW(with_machine_errors([]() -> int { throw std::runtime_error("shape"); }), std::runtime_error);
  EXPECT_THROW(with_machine_errors([]() -> int { throw std::bad_alloc(); }), Error);
  EXPECT_EQ(with_machine_errors([] { return 3; }), 3);
}

TEST(RequireMemory, RefusesWithTheNumbers) {
  const c10::Device cpu = c10::kCPU;
  const std::int64_t free = *free_memory(cpu);
  ASSERT_GT(free, 0);
  EXPECT_NO_THROW(require_memory(cpu, 1, 4, "caches"));
  EXPECT_NO_THROW(require_memory(cpu, 0, 4, "caches"));
  const auto refusal = [&](std::int64_t bytes, std::int64_t count) -> std::string {
    return error_of(ExitCode::memory, [&] { require_memory(cpu, bytes, count, "caches"); });
  };
  EXPECT_THAT(refusal(free / 4, 400), AllOf(HasSubstr("out of memory on cpu: caches need "),
                                            HasSubstr(" free; batch_size "), HasSubstr(" fits")));
  EXPECT_THAT(refusal(std::numeric_limits<std::int64_t>::max() / 2, 3), HasSubstr("dtype bf16"));
}

TEST(FormatBytes, HasTwoDecimals) {
  EXPECT_EQ(format_bytes(512), "512 B");
  EXPECT_EQ(format_bytes(1536), "1.50 KiB");
  EXPECT_EQ(format_bytes((std::int64_t{1} << 20) - 1), "1.00 MiB");
  EXPECT_EQ(format_bytes(std::int64_t{3} << 30), "3.00 GiB");
}

}  // namespace
}  // namespace lamplighter
