#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lamplighter/error.h"

namespace lamplighter {

// One tensor of a safetensors file: dtype by the format's name (F32, BF16, I64, ...), shape, and
// little-endian bytes in row-major order.
struct TensorView {
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::string_view bytes;
};

// A safetensors file in memory. Reading checks the header: lengths, known dtypes, shapes that match byte
// ranges, and ranges inside the file without overlaps. Throws Error(code).
class Safetensors {
 public:
  static Safetensors read(const std::string& path, ExitCode code);
  static Safetensors parse(std::string bytes, const std::string& where, ExitCode code);

  const std::map<std::string, TensorView>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const TensorView& at(const std::string& name) const;  // throws Error(code) when it is missing

  Safetensors(Safetensors&&) = default;
  Safetensors& operator=(Safetensors&&) = default;

 private:
  Safetensors() = default;

  std::unique_ptr<const std::string> bytes_;  // on the heap, so that the views survive a move
  std::string where_;
  ExitCode code_ = ExitCode::input;
  std::map<std::string, TensorView> tensors_;
  std::map<std::string, std::string> metadata_;
};

// Bytes per element of a safetensors dtype; 0 for an unknown one.
std::int64_t safetensors_element_size(std::string_view dtype);

// Encodes a safetensors file; equal input gives equal bytes.
std::string encode_safetensors(const std::map<std::string, TensorView>& tensors,
                               const std::map<std::string, std::string>& metadata = {});

}  // namespace lamplighter
