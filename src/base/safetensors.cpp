#include "base/safetensors.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/files.h"
#include "base/json.h"

namespace lamplighter {
namespace {

constexpr std::uint64_t kMaxHeader = 100'000'000;  // bytes, the limit of the safetensors library

// Bytes of a tensor. Rejects shapes whose product overflows.
std::uint64_t byte_count(const JsonReader& entry, const std::vector<std::int64_t>& shape,
                         std::int64_t element) {
  auto count = static_cast<std::uint64_t>(element);
  for (const std::int64_t extent : shape) {
    if (extent < 0 || __builtin_mul_overflow(count, static_cast<std::uint64_t>(extent), &count)) {
      entry.reject("shape", "extents >= 0 whose product fits 64 bits");
    }
  }
  return count;
}

TensorView read_entry(JsonReader entry, std::string_view data) {
  TensorView view;
  view.dtype = entry.text("dtype");
  view.shape = entry.integers("shape");
  const std::vector<std::int64_t> offsets = entry.integers("data_offsets");
  entry.finish();
  const std::int64_t element = safetensors_element_size(view.dtype);
  if (element == 0) entry.reject("dtype", "a safetensors dtype");
  if (offsets.size() != 2 || offsets[0] < 0 || offsets[1] < offsets[0] ||
      static_cast<std::uint64_t>(offsets[1]) > data.size()) {
    entry.reject("data_offsets",
                 "two offsets inside the file's " + std::to_string(data.size()) + " data bytes");
  }
  const auto begin = static_cast<std::size_t>(offsets[0]);
  view.bytes = data.substr(begin, static_cast<std::size_t>(offsets[1]) - begin);
  const std::uint64_t expected = byte_count(entry, view.shape, element);
  if (expected != view.bytes.size()) {
    entry.reject("data_offsets", std::to_string(expected) + " bytes as dtype and shape say");
  }
  return view;
}

}  // namespace

std::int64_t safetensors_element_size(std::string_view dtype) {
  static const std::map<std::string_view, std::int64_t> sizes{
      {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"U16", 2}, {"I16", 2}, {"F16", 2},
      {"BF16", 2}, {"U32", 4}, {"I32", 4}, {"F32", 4},     {"U64", 8},     {"I64", 8}, {"F64", 8}};
  const auto found = sizes.find(dtype);
  return found == sizes.end() ? 0 : found->second;
}

Safetensors Safetensors::read(const std::string& path, ExitCode code) {
  return parse(read_file(path, code), path, code);
}

Safetensors Safetensors::parse(std::string bytes, const std::string& where, ExitCode code) {
  Safetensors file;
  file.where_ = where;
  file.code_ = code;
  file.bytes_ = std::make_unique<const std::string>(std::move(bytes));
  const std::string_view all = *file.bytes_;
  std::uint64_t length = 0;
  if (all.size() >= sizeof length) std::memcpy(&length, all.data(), sizeof length);
  if (all.size() < sizeof length || length > kMaxHeader || length > all.size() - sizeof length) {
    throw Error(code, where + ": not a safetensors file: its header reaches beyond the file's " +
                          std::to_string(all.size()) + " bytes");
  }
  const Json header = parse_json(all.substr(sizeof length, length), where, code);
  const std::string_view data = all.substr(sizeof length + length);
  JsonReader reader(header, where, code);
  for (const auto& [name, value] : header.items()) {
    if (name == "__metadata__") {
      const JsonReader metadata = reader.object(name);
      for (const auto& [key, text] : value.items()) {
        if (!text.is_string()) metadata.reject(key, "a string");
        file.metadata_[key] = text.get<std::string>();
      }
    } else {
      file.tensors_[name] = read_entry(JsonReader(value, where, code, name), data);
    }
  }
  std::vector<std::string_view> ranges;
  for (const auto& [name, view] : file.tensors_) {
    if (!view.bytes.empty()) ranges.push_back(view.bytes);
  }
  std::sort(ranges.begin(), ranges.end(), [](auto a, auto b) { return a.data() < b.data(); });
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i - 1].data() + ranges[i - 1].size() > ranges[i].data())
      reader.fail("tensors overlap in the file");
  }
  return file;
}

const TensorView& Safetensors::at(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) throw Error(code_, where_ + ": tensor " + name + " is missing");
  return found->second;
}

std::string encode_safetensors(const std::map<std::string, TensorView>& tensors,
                               const std::map<std::string, std::string>& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  // Sorting by element size keeps every tensor aligned.
  std::vector<std::pair<std::string, TensorView>> order(tensors.begin(), tensors.end());
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return safetensors_element_size(a.second.dtype) > safetensors_element_size(b.second.dtype);
  });
  std::string data;
  for (const auto& [name, view] : order) {
    const std::size_t begin = data.size();
    data.append(view.bytes);
    header[name] = {{"dtype", view.dtype}, {"shape", view.shape}, {"data_offsets", {begin, data.size()}}};
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  const std::uint64_t length = text.size();
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes + text + data;
}

}  // namespace lamplighter
