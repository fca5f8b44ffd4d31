#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "lamplighter/pipeline.h"

namespace lamplighter {

// A file of saved codes, JSON:
//   {"format": "lamplighter codes", "schema": 1,
//    "images": [{"rows": 16, "columns": 16, "codes": [codebook indices in raster order], "parameters":
//    {...}}, ...]}
// "parameters" is what the image's PNG carries (pipeline/metadata/metadata.h) and may be missing, and so is
// "preview", the codes of a smaller image in front of these.
struct SavedCodes {
  Codes codes;
  Json parameters;  // null when missing
};

// Throws Error(ExitCode::output), without `overwrite` also for a file that exists. A name that ends with
// .safetensors gets the codes as tensors int64 instead, of image N codes.N [rows, columns] and preview.N, to
// be read by other programs.
void write_codes(const std::string& path, const std::vector<SavedCodes>& images, bool overwrite = true);
// Throws Error(ExitCode::usage) for a name with the ending of an image's. `flag` names it in the message.
void check_codes_name(const std::string& flag, const std::string& path);
// Throw Error(ExitCode::input). `path` names the text in messages.
std::vector<SavedCodes> read_codes(const std::string& path);
std::vector<SavedCodes> parse_codes(std::string_view text, const std::string& path);

}  // namespace lamplighter
