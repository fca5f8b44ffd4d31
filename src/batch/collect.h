#pragma once

#include <string>
#include <vector>

namespace lamplighter {

// Writes what stands in a run's folder beside its pictures and manifests and follows from them:
// captions.json, metadata.jsonl, the gallery, and what the layout brings. Every process may do so at any
// time; the last one to finish sees all pictures. Throws Error (input, output).
void collect(const std::string& folder);
// The gallery alone, for a run that goes on.
void write_gallery(const std::string& folder);

// Joins the manifests of shards into one, manifest.jsonl, in order, after the pictures and manifests of
// `others`, folders of shards that share no disk with it, have been copied into it; then collects. Throws
// Error(ExitCode::usage) when the folders belong to different runs, Error(ExitCode::output) while one is
// drawn.
void merge(const std::string& folder, const std::vector<std::string>& others);

}  // namespace lamplighter
