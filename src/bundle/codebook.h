#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "acceptance/neighbours.h"
#include "lamplighter/bundle.h"

namespace lamplighter {

// Vectors of a bundle's codes.
struct Codebook {
  std::int64_t codes = 0, dimension = 0;
  std::vector<float> vectors;  // [codes, dimension]
};

// The vectors that the image decoder's archive holds: "codebook" as trained, which LANTERN's own tables are
// made from, or in archives without it "table", the rows that the decoder reads (LlamaGen: at unit length).
// Throws Error(bundle).
Codebook read_codebook(const Manifest& manifest);

// A table file, recognised by its content: safetensors with `neighbours` uint16 [codes, K], or LANTERN's own
// .npy. Keeps the first k columns (0: all). Throws Error(code) unless it is for this number of codes and has
// k columns.
NeighbourTable read_neighbours(const std::string& path, std::int64_t codes, std::int64_t k, ExitCode code);

// The bytes of a safetensors file with a table.
std::string encode_neighbours(const NeighbourTable& table);

}  // namespace lamplighter
