#include "bundle/codebook.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "base/files.h"
#include "base/safetensors.h"
#include "bundle/modules/module.h"

namespace lamplighter {
namespace {

constexpr const char* kTensor = "neighbours";

bool is_npy(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;  // to open a pipe may wait for ever
  std::string head(6, '\0');
  std::ifstream(path, std::ios::binary).read(head.data(), static_cast<std::streamsize>(head.size()));
  return head == "\x93NUMPY";
}

NeighbourTable read_safetensors(const std::string& path, std::int64_t k, ExitCode code) {
  const Safetensors file = Safetensors::parse(read_file(path, code, limits::kTable), path, code);
  const TensorView& view = file.at(kTensor);
  const bool fits = view.dtype == "U16" && view.shape.size() == 2;
  if (!fits || view.shape[0] < 2 || view.shape[0] > 65536 || view.shape[1] < std::max<std::int64_t>(k, 1)) {
    std::string shape;
    for (const std::int64_t extent : view.shape)
      shape += (shape.empty() ? "" : ", ") + std::to_string(extent);
    throw Error(code, path + ": " + kTensor + ": got " + view.dtype + " [" + shape +
                          "], expected U16 [codes, " + std::to_string(std::max<std::int64_t>(k, 1)) +
                          " or more]");
  }
  NeighbourTable table;
  table.codes = view.shape[0];
  table.width = k > 0 ? k : view.shape[1];
  table.ids.resize(static_cast<std::size_t>(table.codes * table.width));
  const std::size_t row = static_cast<std::size_t>(table.width) * sizeof(std::uint16_t);
  for (std::int64_t i = 0; i < table.codes; ++i) {
    const std::size_t from = static_cast<std::size_t>(i * view.shape[1]) * sizeof(std::uint16_t);
    std::memcpy(table.ids.data() + i * table.width, view.bytes.data() + from, row);
  }
  check_neighbours(table, path, code);
  return table;
}

}  // namespace

Codebook read_codebook(const Manifest& manifest) {
  const auto entry = manifest.modules.find("image_decoder");
  if (entry == manifest.modules.end()) {
    throw Error(ExitCode::bundle, "bundle " + manifest.directory +
                                      " has no codebook: it lacks image_decoder; give a table of neighbours");
  }
  const std::string path = join_path(manifest.directory, entry->second.file);
  const Module module(manifest.directory, entry->second, "image_decoder", {}, Placement());
  at::Tensor rows = module.buffer("codebook");
  if (!rows.defined()) rows = module.buffer("table");
  if (!rows.defined() || rows.dim() != 2 || rows.size(0) != manifest.decoder.codebook_size) {
    throw Error(ExitCode::bundle, "image_decoder in " + path + ": no codebook of " +
                                      std::to_string(manifest.decoder.codebook_size) +
                                      " rows; export the bundle again");
  }
  rows = rows.to(c10::kFloat).contiguous();
  const float* data = rows.const_data_ptr<float>();
  return {rows.size(0), rows.size(1), {data, data + rows.numel()}};
}

NeighbourTable read_neighbours(const std::string& path, std::int64_t codes, std::int64_t k, ExitCode code) {
  NeighbourTable table = is_npy(path) ? read_npy_neighbours(path, k, code) : read_safetensors(path, k, code);
  if (table.codes != codes) {
    throw Error(code, path + ": got neighbours of " + std::to_string(table.codes) + " codes, expected " +
                          std::to_string(codes) + "; it belongs to another codebook");
  }
  return table;
}

std::string encode_neighbours(const NeighbourTable& table) {
  const std::string_view bytes(reinterpret_cast<const char*>(table.ids.data()),
                               table.ids.size() * sizeof(std::uint16_t));
  return encode_safetensors({{kTensor, {"U16", {table.codes, table.width}, bytes}}});
}

}  // namespace lamplighter
