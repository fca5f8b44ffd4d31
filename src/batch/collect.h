#pragma once

#include <string>
#include <vector>

namespace lamplighter {

// Writes the files that are derived from a run's images and manifests: captions.json, metadata.jsonl, the
// gallery, and the files of the layout. Every process may call it at any time; the last one to finish sees
// all images. Throws Error (input, output).
void collect(const std::string& folder);
// Writes the gallery of an unfinished run.
void write_gallery(const std::string& folder);

// Copies images and manifests from `others`, folders of shards on other disks, joins all manifests in order
// into manifest.jsonl, and collects. Throws Error(ExitCode::usage) when the folders belong to different runs,
// Error(ExitCode::output) while one is being generated.
void merge(const std::string& folder, const std::vector<std::string>& others);

}  // namespace lamplighter
