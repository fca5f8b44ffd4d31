#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include <iostream>
#include <memory>

#include "base/json.h"
#include "device/machine.h"
#include "kernels/common/isa.h"
#include "tools/commands/commands.h"
#include "tools/help.h"
#include "tools/terminal.h"

#if defined(LAMPLIGHTER_WITH_CUDA)
#include <cuda_runtime_api.h>
#endif

namespace lamplighter::cli {
namespace {

Json describe_cpu() {
  return {{"device", "cpu"}, {"threads", at::get_num_threads()}, {"kernels", isa_name(active_isa())}};
}

// Least major compute capability, as in CMAKE_CUDA_ARCHITECTURES.
[[maybe_unused]] constexpr int kLeastCapability = 8;

// Every CUDA device that Torch can use.
std::vector<Json> describe_cuda() {
  std::vector<Json> devices;
#if defined(LAMPLIGHTER_WITH_CUDA)
  const int count = count_cuda_devices();
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp properties{};
    if (cudaGetDeviceProperties(&properties, i) != cudaSuccess) continue;
    devices.push_back(
        {{"device", "cuda:" + std::to_string(i)},
         {"name", properties.name},
         {"compute_capability", std::to_string(properties.major) + "." + std::to_string(properties.minor)},
         {"memory_bytes", properties.totalGlobalMem},
         {"usable", properties.major >= kLeastCapability}});
  }
#endif
  return devices;
}

std::string cuda_state(std::size_t found) {
#if defined(LAMPLIGHTER_WITH_CUDA)
  return found == 0 ? "cuda: " + why_no_cuda() : "";
#else
  return found == 0 ? "cuda: this build has no CUDA kernels" : "";
#endif
}

void devices(bool json) {
  Terminal terminal({});
  const Json cpu = describe_cpu();
  const std::vector<Json> cuda = describe_cuda();
  if (json) {
    Json list = Json::array({cpu});
    for (const Json& device : cuda) list.push_back(device);
    terminal.result(list.dump(1));
    return;
  }
  terminal.result("cpu: " + cpu.at("threads").dump() + " threads, " + cpu.at("kernels").get<std::string>() +
                  " kernels");
  for (const Json& device : cuda) {
    const double gigabytes = device.at("memory_bytes").get<double>() / (1 << 30);
    terminal.result(device.at("device").get<std::string>() + ": " + device.at("name").get<std::string>() +
                    ", compute capability " + device.at("compute_capability").get<std::string>() + ", " +
                    format_fixed(gigabytes, 0) + " GiB" +
                    (device.at("usable").get<bool>() ? "" : "; this build has no kernels for it"));
  }
  const std::string state = cuda_state(cuda.size());
  if (!state.empty()) terminal.result(state);
}

}  // namespace

void add_devices(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("devices", "List the devices that can run a model");
  command->add_flag("--json", *json, "Print JSON");
  add_examples(*command, {{"print JSON for programs", "lamplighter devices --json"}});
  command->callback([json] { devices(*json); });
}

}  // namespace lamplighter::cli
