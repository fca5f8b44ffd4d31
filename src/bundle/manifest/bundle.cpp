#include "lamplighter/bundle.h"

#include <filesystem>

#include "base/files.h"
#include "base/format.h"
#include "lamplighter/error.h"

namespace lamplighter {

namespace {

// What is wrong with a file; empty when nothing is.
std::string damage_of(const Manifest& manifest, const std::string& name, const FileEntry& entry,
                      bool checksums) {
  namespace fs = std::filesystem;
  const std::string path = join_path(manifest.directory, name);
  std::error_code error, ignored;
  const std::uintmax_t size = fs::file_size(path, error);
  if (error) return error.message();
  if (fs::canonical(path, error).parent_path() != fs::canonical(manifest.directory, ignored))
    return "it is a link out of the bundle's folder; copy the file itself";
  if (size != entry.bytes) {
    return "got " + counted(size, "byte") + ", expected " + std::to_string(entry.bytes) +
           "; copy or export the bundle again";
  }
  const std::string sum = checksums ? sha256_file(path, ExitCode::bundle) : entry.sha256;
  if (sum != entry.sha256) {
    return "got SHA-256 " + sum.substr(0, 16) + "..., expected " + entry.sha256.substr(0, 16) +
           "...; the file was changed or damaged";
  }
  return "";
}

void refuse_missing(const Manifest& manifest, const std::string& what,
                    const std::vector<std::string>& missing) {
  if (missing.empty()) return;
  std::string names;
  for (const std::string& name : missing) names += (names.empty() ? "" : ", ") + name;
  throw Error(ExitCode::bundle,
              "bundle " + manifest.directory + " cannot generate " + what + ": it lacks " + names);
}

}  // namespace

void verify_files(const Manifest& manifest, bool checksums) {
  for (const auto& [name, entry] : manifest.files) {
    const std::string damage = damage_of(manifest, name, entry, checksums);
    if (!damage.empty())
      throw Error(ExitCode::bundle, "bundle file " + join_path(manifest.directory, name) + ": " + damage);
  }
}

std::map<std::string, std::string> find_damage(const Manifest& manifest, bool checksums) {
  std::map<std::string, std::string> found;
  for (const auto& [name, entry] : manifest.files) {
    const std::string damage = damage_of(manifest, name, entry, checksums);
    if (!damage.empty()) found[name] = damage;
  }
  return found;
}

std::vector<std::string> missing_for_tokens(const Manifest& manifest) {
  std::vector<std::string> missing;
  if (!manifest.has("target")) missing.emplace_back("modules.target");
  if (!manifest.prompt) return missing;
  if (manifest.prompt->kind == "text_features" && !manifest.has("text_encoder"))
    missing.emplace_back("modules.text_encoder");
  if (manifest.prompt->kind != "class" && !manifest.tokenizer) missing.emplace_back("tokenizer");
  return missing;
}

std::vector<std::string> missing_for_generation(const Manifest& manifest) {
  std::vector<std::string> missing = missing_for_tokens(manifest);
  if (!manifest.has("image_decoder")) missing.emplace_back("modules.image_decoder");
  return missing;
}

const Grid& find_grid(const Manifest& manifest, int width, int height) {
  if (manifest.grids.empty()) throw Error(ExitCode::bundle, "bundle " + manifest.directory + " has no grids");
  std::string known;
  for (const Grid& grid : manifest.grids) {
    // With one side given, the first grid that has it.
    if ((width == 0 || width == grid.width) && (height == 0 || height == grid.height)) return grid;
    known += (known.empty() ? "" : ", ") + sides(grid.width, grid.height);
  }
  const std::string got = height == 0  ? "width " + std::to_string(width)
                          : width == 0 ? "height " + std::to_string(height)
                                       : sides(width, height);
  throw Error(ExitCode::usage, "size: got " + got + ", this bundle generates " + known);
}

void require_tokens(const Manifest& manifest) {
  refuse_missing(manifest, "tokens", missing_for_tokens(manifest));
}

void require_generatable(const Manifest& manifest) {
  refuse_missing(manifest, "images", missing_for_generation(manifest));
}

}  // namespace lamplighter
