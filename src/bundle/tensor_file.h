#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>

#include "base/safetensors.h"

namespace lamplighter {

// A tensor of a safetensors file as a Torch tensor on the CPU; it owns its memory. Throws Error(code) when
// Torch has no such dtype.
at::Tensor to_tensor(const TensorView& view, const std::string& name, ExitCode code);

// Writes tensors (any device) as a safetensors file, atomically. Throws Error(ExitCode::output).
void write_tensors(const std::string& path, const std::map<std::string, at::Tensor>& tensors);

}  // namespace lamplighter
