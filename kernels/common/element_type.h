#pragma once

namespace lamplighter {

// Storage type of activations, weights and caches in the torch-free kernels. Arithmetic is fp32 throughout.
enum class ElementType { kFloat32, kBFloat16, kFloat16 };

}  // namespace lamplighter
