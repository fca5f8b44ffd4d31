#pragma once

#include <torch/library.h>

#include <string>
#include <type_traits>

// How a family's operator.cpp defines its operators: a schema, and one function for all devices.
namespace lamplighter {

// Where an operator runs. `meta` is what tracing and exporting call in place of the kernels: its results have
// the shapes, dtypes and strides of the others (kernels/common/meta.h).
enum class On { cpu, cuda, meta };

// `schema`: the operator's name, arguments and results; every argument that it changes carries an alias,
// (a!). function(Place): the address of its function for a place, a template over On whose signature the
// dispatcher checks against the schema.
template <class Function>
void define(torch::Library& library, const std::string& schema, Function function) {
  using torch::dispatch;
  const std::string name = schema.substr(0, schema.find('('));
  library.def(schema.c_str());
  library.impl(name.c_str(),
               dispatch(c10::DispatchKey::CPU, function(std::integral_constant<On, On::cpu>())));
  library.impl(name.c_str(),
               dispatch(c10::DispatchKey::Meta, function(std::integral_constant<On, On::meta>())));
  if constexpr (LAMPLIGHTER_WITH_CUDA != 0) {
    library.impl(name.c_str(),
                 dispatch(c10::DispatchKey::CUDA, function(std::integral_constant<On, On::cuda>())));
  }
}

}  // namespace lamplighter
