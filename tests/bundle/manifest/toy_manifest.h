#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "base/json.h"
#include "lamplighter/bundle.h"
#include "lamplighter/error.h"
#include "tests/error_of.h"

// A bundle folder whose manifest tests can change.
namespace lamplighter {

constexpr const char* kManifest = R"({
  "schema_version": 1, "name": "toy", "family": "llamagen-t2i",
  "exporter": {"version": "0.1.0", "torch": "2.11.0"}, "licence": "Apache-2.0", "source": "random weights",
  "files": {
    "target.pt": {"bytes": 6, "sha256": "8dc77b80e3fec43b3377fcc3b53f1b9e5ee5d78be42f2d1d8b0c67ad90d8ed6d"},
    "decoder.pt": {"bytes": 6, "sha256": "8dc77b80e3fec43b3377fcc3b53f1b9e5ee5d78be42f2d1d8b0c67ad90d8ed6d"}
  },
  "modules": {
    "target": {"file": "target.pt", "dtype": "float32"},
    "image_decoder": {"file": "decoder.pt", "dtype": "float16"}
  },
  "prompt": {"kind": "text_features", "length": 24, "align": "end", "features": 64},
  "tokens": {"vocabulary": 512, "first_image_id": 0, "codebook_size": 512},
  "grids": [{"width": 128, "height": 128, "rows": 16, "columns": 16},
            {"width": 64, "height": 128, "rows": 16, "columns": 8}],
  "sampling": {"cfg_scale": 3.0, "temperature": 1.0, "top_k": 100, "top_p": 1.0, "order": "ar"},
  "target": {"hidden": 64, "features": 64, "head": 512},
  "cache": {"layers": 2, "kv_heads": 4, "head_dim": 16, "max_length": 280},
  "decoder": {"codebook_size": 512, "downsample": 8}
})";

class ManifestTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ =
        std::filesystem::temp_directory_path() / ("lamplighter_manifest_" + std::to_string(::getpid()));
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  void write(const std::string& name, const std::string& text) {
    std::ofstream(directory_ / name, std::ios::binary) << text;
  }
  Manifest read(const std::function<void(Json&)>& change = {}) {
    Json json = Json::parse(kManifest);
    if (change) change(json);
    write("manifest.json", json.dump());
    return read_manifest(directory_.string());
  }
  // The bundle error of a changed manifest; checks that the message is one line.
  std::string error(const std::function<void(Json&)>& change) {
    return error_of(ExitCode::bundle, [&] { read(change); });
  }

  std::filesystem::path directory_;
};

}  // namespace lamplighter
