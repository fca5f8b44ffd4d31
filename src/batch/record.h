#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"

namespace lamplighter {

// One image of a run: a line of its manifest.
struct Record {
  std::size_t index = 0, repeat = 0;  // of the caption in the whole set; of the image among its caption's
  std::string caption;                // the prompt; empty for a class
  std::optional<std::int64_t> class_id, image_id;
  std::string id;  // the caption's own; empty: none
  Json fields;     // the caption's record in its file; null for plain text
  std::uint64_t seed = 0;
  int configuration = 0;                  // index in run.json
  std::optional<std::uint64_t> run_seed;  // seed of that configuration; set by read_records, not stored
  std::string error;                      // why generation failed; empty: the image exists

  // Only for existing images.
  std::string file;                                  // relative to the run's folder: "images/00003.png"
  std::string sha256;                                // of the file
  std::uint64_t bytes = 0;                           // of the file
  int width = 0, height = 0, rows = 0, columns = 0;  // pixels; token grid
  std::string cut;  // dropped end of a caption that is too long for the bundle
  std::string method;
  std::int64_t tokens = 0, target_passes = 0;
  std::vector<std::int64_t> committed;  // tokens of every cycle, in order, without the prefill's token
  std::vector<std::int64_t> order;      // positions in order of commitment; empty: raster order
  double text_ms = 0, prefill_ms = 0, decode_ms = 0, image_ms = 0;
  int batch = 1;  // most images generated together with it, itself included

  std::string text() const { return class_id ? "class " + std::to_string(*class_id) : caption; }
  bool is_failed() const { return !error.empty(); }
  double step_compression() const {
    return target_passes > 0 ? static_cast<double>(tokens) / static_cast<double>(target_passes) : 0.0;
  }
  double total_ms() const { return text_ms + prefill_ms + decode_ms + image_ms; }
};

Json to_json(const Record& record);
// Throws Error(ExitCode::input) with `where` and the field.
Record parse_record(const Json& json, const std::string& where);

}  // namespace lamplighter
