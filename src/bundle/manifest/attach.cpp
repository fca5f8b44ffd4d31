#include "bundle/manifest/attach.h"

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "base/sha256.h"

namespace lamplighter {
namespace {

// Whether any text in `json` is `name`; the list of files, which names all, is not looked at.
bool names(const Json& json, const std::string& name, bool top = true) {
  if (json.is_string()) return json.get_ref<const std::string&>() == name;
  if (!json.is_structured()) return false;
  const auto items = json.items();
  return std::any_of(items.begin(), items.end(), [&](const auto& item) {
    return !(top && item.key() == "files") && names(item.value(), name, false);
  });
}

// The file an entry stands for: the entry itself or its "file".
std::string file_of(const Json& entry) {
  const Json file = entry.is_object() ? entry.value("file", Json()) : entry;
  return file.is_string() ? file.get<std::string>() : "";
}

std::string sha256(std::string_view bytes) {
  Sha256 sum;
  sum.update(bytes);
  return sum.hex_digest();
}

// As the exporter writes it.
void write_manifest(const std::string& path, const Json& manifest) {
  write_file(path, manifest.dump(1) + "\n");
}

// Takes the entry out; what an earlier entry alone named is no longer a file of the bundle. Gives its name.
std::string detach(Json& manifest, const Json::json_pointer& place) {
  if (!manifest.contains(place)) return "";
  const std::string old = file_of(manifest.at(place));
  manifest.at(place.parent_pointer()).erase(place.back());
  if (old.empty() || names(manifest, old)) return "";
  manifest["files"].erase(old);
  return old;
}

}  // namespace

void attach_file(const std::string& directory, const std::string& name, std::string_view bytes,
                 const std::string& pointer, const Json& entry) {
  const std::string path = join_path(directory, "manifest.json");
  Json manifest = parse_json(read_file(path, ExitCode::bundle, limits::kManifest), path, ExitCode::bundle);
  if (!manifest.is_object() || !manifest["files"].is_object()) {
    throw Error(ExitCode::bundle, path + ": expected an object with \"files\"; export the bundle again");
  }
  const Json described = {{"bytes", bytes.size()}, {"sha256", sha256(bytes)}};
  const Json::json_pointer place(pointer);
  const Json before = manifest;
  const std::string old = detach(manifest, place);
  if (names(manifest, name) || name == "manifest.json") {
    throw Error(ExitCode::bundle, path + ": " + name + " is already used for something else");
  }
  const std::string file = join_path(directory, name);
  const auto known = before["files"].find(name);
  const bool same = known != before["files"].end() && *known == described;
  if (!same && manifest != before) write_manifest(path, manifest);
  write_file(file, bytes);
  manifest = before;
  if (!old.empty() && old != name) manifest["files"].erase(old);
  manifest["files"][name] = described;
  manifest[place] = entry;
  write_manifest(path, manifest);
  std::error_code ignored;
  if (!old.empty() && old != name) std::filesystem::remove(join_path(directory, old), ignored);
}

}  // namespace lamplighter
