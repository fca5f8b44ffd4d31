#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace lamplighter {

// Writes the files that are derived from a run's images and manifests: captions.json, metadata.jsonl, the
// gallery, and the files of the layout. Every process may call it at any time; the last one to finish sees
// all images. Throws Error (input, output).
void collect(const std::string& folder);
// Writes the gallery of an unfinished run from time to time.
class GalleryUpdates {
 public:
  // Writes it if it is due: at most every 30 s, and in at most 1/20 of the time.
  void update(const std::string& folder);

 private:
  std::chrono::steady_clock::time_point due_ = std::chrono::steady_clock::now() + kEvery;
  static constexpr std::chrono::seconds kEvery{30};
};

// Copies images and manifests from `others`, folders of shards on other disks, joins all manifests in order
// into manifest.jsonl, and collects. Throws Error(ExitCode::usage) when the folders belong to different runs,
// Error(ExitCode::output) while one is being generated.
void merge(const std::string& folder, const std::vector<std::string>& others);

}  // namespace lamplighter
