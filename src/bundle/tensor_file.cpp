#include "bundle/tensor_file.h"

#include <ATen/ops/empty.h>

#include <array>
#include <cstring>
#include <utility>

#include "base/files.h"

namespace lamplighter {
namespace {

constexpr std::array<std::pair<const char*, c10::ScalarType>, 9> kTypes{{{"F64", c10::kDouble},
                                                                         {"F32", c10::kFloat},
                                                                         {"F16", c10::kHalf},
                                                                         {"BF16", c10::kBFloat16},
                                                                         {"I64", c10::kLong},
                                                                         {"I32", c10::kInt},
                                                                         {"I16", c10::kShort},
                                                                         {"U8", c10::kByte},
                                                                         {"BOOL", c10::kBool}}};

}  // namespace

at::Tensor to_tensor(const TensorView& view, const std::string& name, ExitCode code) {
  for (const auto& [dtype, type] : kTypes) {
    if (view.dtype != dtype) continue;
    at::Tensor tensor = at::empty(view.shape, type);
    std::memcpy(tensor.mutable_data_ptr(), view.bytes.data(), view.bytes.size());
    return tensor;
  }
  throw Error(code, "tensor " + name + ": dtype " + view.dtype + " is not supported");
}

void write_tensors(const std::string& path, const std::map<std::string, at::Tensor>& tensors) {
  std::map<std::string, TensorView> views;
  std::vector<at::Tensor> kept;  // the views point into these
  for (const auto& [name, tensor] : tensors) {
    kept.push_back(tensor.cpu().contiguous());
    for (const auto& [dtype, type] : kTypes) {
      if (kept.back().scalar_type() != type) continue;
      views[name] = {dtype,
                     kept.back().sizes().vec(),
                     {static_cast<const char*>(kept.back().const_data_ptr()), kept.back().nbytes()}};
    }
  }
  write_file(path, encode_safetensors(views));
}

}  // namespace lamplighter
