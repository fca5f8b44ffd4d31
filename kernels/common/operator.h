#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>
#include <torch/library.h>

#include <string>
#include <type_traits>
#include <utility>

// How a NAME_operator.cpp defines its operators: one function for all devices, and a schema.
namespace lamplighter {

// Where an operator runs. `meta` is what tracing and exporting call in place of the kernels: its results have
// the shapes, dtypes and strides of the others (kernels/common/meta.h).
enum class On { cpu, cuda, meta };
template <On on>
using DeviceTag = std::integral_constant<On, on>;

// Defines an operator that TorchScript archives call. `schema` has its name, arguments and results; every
// argument that it changes carries an alias, (a!). function(DeviceTag) returns the address of its function
// for a device, a template over On. The dispatcher checks the signature against the schema.
template <class Function>
void define(torch::Library& library, const std::string& schema, Function function) {
  using torch::dispatch;
  const std::string name = schema.substr(0, schema.find('('));
  library.def(schema.c_str());
  library.impl(name.c_str(), dispatch(c10::DispatchKey::CPU, function(DeviceTag<On::cpu>())));
  library.impl(name.c_str(), dispatch(c10::DispatchKey::Meta, function(DeviceTag<On::meta>())));
  if constexpr (LAMPLIGHTER_WITH_CUDA != 0) {
    library.impl(name.c_str(), dispatch(c10::DispatchKey::CUDA, function(DeviceTag<On::cuda>())));
  }
}

// Lets Python call an operator that is a function of structs, for recorded cases. `adaptor` takes what the
// schema says and calls that function, which chooses the device itself.
template <class Adaptor>
void define_adaptor(torch::Library& library, const std::string& schema, Adaptor adaptor) {
  define(library, schema, [&](auto) { return adaptor; });
}

// Calls body(DeviceTag) for the device of a tensor. Profilers show the call as `name`.
template <class Body>
auto on_device(const char* name, const at::Tensor& tensor, Body body) {
  at::RecordFunction record(at::RecordScope::FUNCTION);
  if (record.isActive()) record.before(name);
  if (tensor.is_meta()) return body(DeviceTag<On::meta>());
  if constexpr (LAMPLIGHTER_WITH_CUDA != 0) {
    if (tensor.is_cuda()) return body(DeviceTag<On::cuda>());
  }
  TORCH_CHECK(tensor.is_cpu(), name, ": got a tensor on ", tensor.device(), ", expected cpu",
              LAMPLIGHTER_WITH_CUDA != 0 ? " or cuda" : "");
  return body(DeviceTag<On::cpu>());
}

}  // namespace lamplighter
