#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"

namespace lamplighter {

// What a run knows of one picture: a line of its manifest.
struct Record {
  std::size_t index = 0, repeat = 0;  // of the caption in the whole set, of the picture among its caption's
  std::string caption;                // as it was drawn; empty for a class
  std::optional<std::int64_t> class_id, image_id;
  std::string id;  // of the caption's own; empty: none
  Json fields;     // the caption's record in its file; null when it was a bare text
  std::uint64_t seed = 0;
  int configuration = 0;  // of run.json's, from 0
  std::string error;      // why there is no picture; empty: there is one

  // What is there of a picture alone.
  std::string file;                                  // below the run's folder: "images/00003.png"
  std::string sha256;                                // of the file
  std::uint64_t bytes = 0;                           // of the file
  int width = 0, height = 0, rows = 0, columns = 0;  // pixels, and the grid of tokens
  std::string cut;  // the caption's end, where the bundle does not take it all
  std::string method;
  std::int64_t tokens = 0, target_passes = 0;
  std::vector<std::int64_t>
      committed;                    // tokens of every cycle, in order; the prefill's first one not among them
  std::vector<std::int64_t> order;  // their places as they were committed; empty: raster order
  double text_ms = 0, prefill_ms = 0, decode_ms = 0, image_ms = 0;
  int batch = 1;  // most pictures that were drawn side by side with it

  std::string text() const { return class_id ? "class " + std::to_string(*class_id) : caption; }
  bool is_failed() const { return !error.empty(); }
  double step_compression() const {
    return target_passes > 0 ? static_cast<double>(tokens) / static_cast<double>(target_passes) : 0.0;
  }
  double total_ms() const { return text_ms + prefill_ms + decode_ms + image_ms; }
};

Json to_json(const Record& record);
// Throws Error(ExitCode::input) naming `where` and the field.
Record parse_record(const Json& json, const std::string& where);

}  // namespace lamplighter
