#include "pipeline/output/codes_file.h"

#include <ATen/ops/tensor.h>

#include <filesystem>
#include <map>

#include "base/files.h"
#include "bundle/tensor_file.h"
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
void write_code_tensors(const std::string& path, const std::vector<SavedCodes>& images, bool overwrite) {
  std::map<std::string, at::Tensor> tensors;
  for (std::size_t i = 0; i < images.size(); ++i) {
    const Codes& codes = images[i].codes;
    const std::string number = std::to_string(i);
    tensors["codes." + number] =
        at::tensor(codes.ids, at::kInt).to(at::kLong).view({codes.rows, codes.columns});
    if (!codes.preview.empty())
      tensors["preview." + number] = at::tensor(codes.preview, at::kInt).to(at::kLong);
  }
  write_tensors(path, tensors, overwrite);
}

}  // namespace

void write_codes(const std::string& path, const std::vector<SavedCodes>& images, bool overwrite) {
  if (std::filesystem::path(path).extension() == ".safetensors")
    return write_code_tensors(path, images, overwrite);
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

std::vector<SavedCodes> read_codes(const std::string& path) {
  const std::string text = read_input(path);
  if (text.rfind("\x89PNG", 0) == 0) {
    throw Error(ExitCode::input,
                path + ": got an image, expected the tokens of one, as `generate --save-codes` writes them");
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
