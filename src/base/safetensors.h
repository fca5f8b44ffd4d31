#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lamplighter/error.h"

namespace lamplighter {

// One tensor of a safetensors file: dtype as the format names it (F32, BF16, I64, ...), shape, little-endian
// bytes in row-major order.
struct TensorView {
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::string_view bytes;
};

// A safetensors file held in memory. Reading checks the header: lengths, known dtypes, shapes that agree with
// byte ranges, ranges inside the file and free of overlaps. Throws Error(code).
class Safetensors {
 public:
  static Safetensors read(const std::string& path, ExitCode code);
  static Safetensors parse(std::string bytes, const std::string& where, ExitCode code);

  const std::map<std::string, TensorView>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const TensorView& at(const std::string& name) const;  // throws Error(code) when it is not there

  Safetensors(Safetensors&&) = default;
  Safetensors& operator=(Safetensors&&) = default;

 private:
  Safetensors() = default;

  std::unique_ptr<const std::string> bytes_;  // the views point into it, also after a move
  std::string where_;
  ExitCode code_ = ExitCode::input;
  std::map<std::string, TensorView> tensors_;
  std::map<std::string, std::string> metadata_;
};

// Bytes per element of a safetensors dtype; 0 for one that is not known.
std::int64_t safetensors_element_size(std::string_view dtype);

// The bytes of a safetensors file; equal input gives equal bytes.
std::string encode_safetensors(const std::map<std::string, TensorView>& tensors,
                               const std::map<std::string, std::string>& metadata = {});

}  // namespace lamplighter
