#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/common/exported.h"

namespace lamplighter {

// Like at::empty on the CPU; what fills whole huge pages asks for them: streaming through small pages is a
// fifth slower, and the system takes each small page's fault by itself. Where it grants none, nothing
// changes.
LAMPLIGHTER_EXPORTED at::Tensor empty_in_large_pages(at::IntArrayRef shape, const at::TensorOptions& options);

}  // namespace lamplighter
