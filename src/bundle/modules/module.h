#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "device/placement.h"
#include "lamplighter/bundle.h"

namespace torch::jit {
struct Module;
}

namespace lamplighter {

// A TorchScript archive of a bundle, loaded to its device and prepared (weights cast and packed).
// The one place that knows TorchScript: arguments and results are flat lists of tensors, so that another
// kind of compiled module can take its position. Copies share the module. Calls are safe from one thread at a
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

  // Calls a method; a tuple of tensors becomes a vector.
  std::vector<at::Tensor> call(const std::string& method, const std::vector<at::Tensor>& arguments) const;
  // The same for methods with one result.
  at::Tensor operator()(const std::string& method, const std::vector<at::Tensor>& arguments) const;

  // The archive's tensor of this name; undefined where there is none.
  at::Tensor buffer(const std::string& name) const;

  const Placement& placement() const { return placement_; }
  // What messages call the module.
  const std::string& role() const { return role_; }

 private:
  // Finds the methods and prepares weights that are stored in `bits` bits. Messages name `where`.
  void set_up(const std::string& where, const std::vector<std::string>& methods, int bits);

  struct Archive;
  std::shared_ptr<Archive> archive_;
  std::string role_;
  Placement placement_;
};

}  // namespace lamplighter
