#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "lamplighter/bundle.h"

namespace torch::jit {
struct Module;
}

namespace lamplighter {

// Where and in which precision modules run.
struct Placement {
  c10::Device device{c10::kCPU};
  c10::ScalarType dtype = c10::kFloat;  // of activations and caches, and of weights that are not rounded
  int weight_bits = 16;                 // 8 or 4: the weights of products are rounded to integers
};

// Resolves "auto", checks that the device exists. Throws Error (usage, device).
Placement resolve_placement(const RuntimeOptions& options);

// Also what the bundle's modules can run in: rounded weights beside bf16 alone, and "auto" is the precision
// in which a target is stored that has them.
Placement resolve_placement(const RuntimeOptions& options, const Manifest& manifest);

// Bits of a weight of a product as a module stores it: 8 or 4 where it is rounded, else 16.
int stored_bits(const ModuleEntry& entry);

std::string dtype_name(const Placement& placement);  // fp32, bf16, fp16, int8, int4

// A TorchScript archive of a bundle, loaded to its device and prepared (weights cast and packed).
// The one place that knows TorchScript: arguments and results are flat lists of tensors, so that another
// kind of compiled module can take its place. Copies share the module. Calls are safe from one thread at a
// time.
class Module {
 public:
  // `role` names the module in messages. Throws Error(ExitCode::bundle) when the file is no TorchScript
  // archive or lacks one of `methods`, Error(ExitCode::memory) before reading weights that do not fit.
  Module(const std::string& directory, const ModuleEntry& entry, const std::string& role,
         const std::vector<std::string>& methods, const Placement& placement);
  // The same for a module made in memory, on its device already; its buffers are shared.
  Module(const torch::jit::Module& module, const std::string& role, const std::vector<std::string>& methods,
         const Placement& placement);

  // Calls a method; a tuple of tensors comes back as several.
  std::vector<at::Tensor> call(const std::string& method, const std::vector<at::Tensor>& arguments) const;
  // The same for methods with one result.
  at::Tensor operator()(const std::string& method, const std::vector<at::Tensor>& arguments) const;

  // What the archive keeps under the name; undefined when it has no such tensor.
  at::Tensor buffer(const std::string& name) const;

  const Placement& placement() const { return placement_; }

 private:
  // Looks the methods up and prepares the weights; `where` stands in messages.
  void set_up(const std::string& where, const std::vector<std::string>& methods);

  struct Archive;
  std::shared_ptr<Archive> archive_;
  std::string role_;
  Placement placement_;
};

}  // namespace lamplighter
