#include <filesystem>

#include "base/files.h"
#include "base/message.h"
#include "bundle/manifest/agreement.h"
#include "bundle/manifest/sections.h"

namespace lamplighter {
namespace {

constexpr int kSchemaVersion = 1;

// Throws unless the folder exists.
void check_folder(const std::string& directory) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (!fs::exists(directory, ignored)) {
    throw Error(ExitCode::bundle,
                "bundle " + directory + ": no such folder; lamplighter-export makes bundles");
  }
  if (!fs::is_directory(directory, ignored)) {
    throw Error(ExitCode::bundle,
                "bundle " + directory + ": got a file, expected a folder with manifest.json");
  }
}

// Where the bundle comes from, and its files. Texts stand in reports, metadata and pages: they are kept
// escaped.
void read_origin(JsonReader& reader, Manifest& manifest) {
  manifest.name = escaped(reader.text("name"));
  manifest.family = escaped(reader.text("family"));
  manifest.licence = escaped(reader.text("licence"));
  manifest.source = escaped(reader.text("source"));
  JsonReader exporter = reader.object("exporter");
  manifest.exporter_version = exporter.text("version");
  manifest.exporter_torch = exporter.text("torch");
  exporter.finish();
  for (auto& [name, file] : reader.members("files")) {
    if (name.empty() || name[0] == '.' || name.find('/') != std::string::npos)
      file.fail("no plain name of a file in the bundle's folder");
    FileEntry& entry = manifest.files[name];
    entry.bytes = file.unsigned_integer("bytes");
    entry.sha256 = file.text("sha256");
    if (entry.sha256.size() != 64) file.reject("sha256", "64 hexadecimal digits");
    file.finish();
  }
}

}  // namespace

Manifest read_manifest(const std::string& directory) {
  check_folder(directory);
  const std::string path = join_path(directory, "manifest.json");
  const Json json = parse_json(read_file(path, ExitCode::bundle, limits::kManifest), path, ExitCode::bundle);
  JsonReader reader(json, path, ExitCode::bundle);
  const std::int64_t version = reader.integer("schema_version");
  if (version != kSchemaVersion) {
    reader.reject("schema_version",
                  std::to_string(kSchemaVersion) + "; use a matching lamplighter or export the bundle again");
  }

  Manifest manifest;
  manifest.directory = directory;
  read_origin(reader, manifest);
  read_modules(reader, manifest);
  read_data(reader, manifest);
  read_generating(reader, manifest);
  read_shapes(reader, manifest);
  reader.finish();
  check_agreement(reader, manifest);
  return manifest;
}

}  // namespace lamplighter
