#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lamplighter {

// Where and how a bundle runs.
struct RuntimeOptions {
  std::string device = "auto";  // auto (CUDA when there is one), cpu, cuda, cuda:N
  std::string dtype =
      "auto";       // auto, fp32, bf16, fp16 (CUDA only); auto = bf16 where the device multiplies it natively
  int threads = 0;  // CPU threads; 0 = all cores
  int batch_size = 4;            // images decoded together
  bool verify_checksums = true;  // compare every file with the manifest's SHA-256 before loading
};

// How tokens are drawn. Order: guidance, temperature, top-k, top-p, draw.
struct SamplingOptions {
  float cfg_scale = 1.0F;    // guided logits = uncond + (cond - uncond) * cfg_scale; <= 1 turns guidance off
  float temperature = 1.0F;  // 0 = always the most probable token
  std::int64_t top_k = 0;    // keep the k most probable tokens and their ties; 0 = all
  float top_p = 1.0F;        // keep the smallest set of tokens with this mass; 1 = all
  std::int64_t cfg_interval = -1;  // guide tokens 0 .. cfg_interval + 1 only; -1 = all
};

// One picture to draw. What is not set comes from the bundle.
struct Request {
  std::string prompt;                    // caption, UTF-8 (text bundles)
  std::optional<std::int64_t> class_id;  // class (class-conditional bundles)
  std::uint64_t seed = 42;
  int width = 0;   // pixels; 0 = the bundle's first grid
  int height = 0;  // pixels
  std::optional<float> cfg_scale, temperature, top_p;
  std::optional<std::int64_t> top_k, cfg_interval;
};

}  // namespace lamplighter
