#include "pipeline/output/codes_file.h"

#include <cstdint>
#include <deque>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "base/files.h"
#include "base/message.h"
#include "base/safetensors.h"
#include "image/formats.h"
#include "lamplighter/error.h"

namespace lamplighter {
namespace {

constexpr const char* kFormat = "lamplighter codes";
constexpr int kSchema = 1;
constexpr std::int64_t kMaxSide = 4096;  // tokens

std::vector<std::int32_t> read_indices(JsonReader& reader, const std::string& key) {
  std::vector<std::int32_t> indices;
  for (const std::int64_t id : reader.integers(key)) {
    if (id < 0 || id > std::numeric_limits<std::int32_t>::max()) {
      reader.fail(key + ": got " + std::to_string(id) + ", expected codebook indices");
    }
    indices.push_back(static_cast<std::int32_t>(id));
  }
  return indices;
}

SavedCodes read_image(JsonReader reader) {
  SavedCodes saved;
  saved.codes.rows = static_cast<int>(reader.integer("rows", 1, kMaxSide));
  saved.codes.columns = static_cast<int>(reader.integer("columns", 1, kMaxSide));
  saved.codes.ids = read_indices(reader, "codes");
  if (reader.has("preview")) saved.codes.preview = read_indices(reader, "preview");
  if (reader.has("parameters")) {
    JsonReader parameters = reader.object("parameters");
    saved.parameters = reader.value("parameters");
  }
  reader.finish();
  const std::int64_t expected = std::int64_t{saved.codes.rows} * saved.codes.columns;
  if (static_cast<std::int64_t>(saved.codes.ids.size()) != expected) {
    reader.fail("codes: got " + std::to_string(saved.codes.ids.size()) + " indices, expected " +
                std::to_string(expected));
  }
  return saved;
}

// Tensors int64: codes.N [rows, columns] and preview.N [codes].
std::string encode_tensors(const std::vector<SavedCodes>& images) {
  std::map<std::string, TensorView> tensors;
  std::deque<std::vector<std::int64_t>> kept;  // the views point into these
  const auto add = [&](const std::string& name, const std::vector<std::int32_t>& ids,
                       std::vector<std::int64_t> shape) {
    const std::vector<std::int64_t>& wide = kept.emplace_back(ids.begin(), ids.end());
    tensors[name] = {"I64",
                     std::move(shape),
                     {reinterpret_cast<const char*>(wide.data()), wide.size() * sizeof(std::int64_t)}};
  };
  for (std::size_t i = 0; i < images.size(); ++i) {
    const Codes& codes = images[i].codes;
    add("codes." + std::to_string(i), codes.ids, {codes.rows, codes.columns});
    if (!codes.preview.empty())
      add("preview." + std::to_string(i), codes.preview, {static_cast<std::int64_t>(codes.preview.size())});
  }
  return encode_safetensors(tensors);
}

}  // namespace

void write_codes(const std::string& path, const std::vector<SavedCodes>& images, bool overwrite) {
  if (std::filesystem::path(path).extension() == ".safetensors")
    return write_file(path, encode_tensors(images), overwrite);
  Json list = Json::array();
  for (const SavedCodes& image : images) {
    Json entry{{"rows", image.codes.rows}, {"columns", image.codes.columns}, {"codes", image.codes.ids}};
    if (!image.codes.preview.empty()) entry["preview"] = image.codes.preview;
    if (!image.parameters.is_null()) entry["parameters"] = image.parameters;
    list.push_back(std::move(entry));
  }
  const Json file{{"format", kFormat}, {"schema", kSchema}, {"images", std::move(list)}};
  write_file(path, file.dump() + "\n", overwrite);
}

void check_codes_name(const std::string& flag, const std::string& path) {
  if (!is_image_name(path)) return;
  throw Error(ExitCode::usage,
              flag + ": got " + quote(path) +
                  ", expected a name that ends with .json or .safetensors: codes are no image");
}

std::vector<SavedCodes> read_codes(const std::string& path) {
  return parse_codes(read_input(path), path);
}

std::vector<SavedCodes> parse_codes(std::string_view text, const std::string& path) {
  if (!image_kind(text).empty()) {
    throw Error(
        ExitCode::input,
        path +
            ": got an image, expected the tokens of one, as `encode` and `generate --save-codes` write them");
  }
  const Json file = parse_json(text, path, ExitCode::input);
  JsonReader reader(file, path, ExitCode::input);
  reader.choice("format", {kFormat});
  reader.integer("schema", kSchema, kSchema);
  std::vector<SavedCodes> images;
  for (JsonReader& image : reader.objects("images")) images.push_back(read_image(std::move(image)));
  reader.finish();
  if (images.empty()) reader.fail("images: got none");
  return images;
}

}  // namespace lamplighter
