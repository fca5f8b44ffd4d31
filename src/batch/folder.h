#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/durable.h"
#include "base/json.h"
#include "batch/processes/shard.h"
#include "batch/record.h"

// The folder of a run:
//   images/                     finished pictures, nothing else
//   run.json                    what the run draws and how, to repeat it
//   manifest.jsonl              a line a picture, as they were finished (manifest-0003-of-0016.jsonl of a
//   shard) captions.json               their captions, in the natural order of the pictures' names
//   metadata.jsonl              the same with names, as Hugging Face's imagefolder reads it
//   index.html                  the gallery
//   .tmp/                       locks, and what is being written
namespace lamplighter {

// A shard's hold on a run's folder, for writing. Several processes may hold one folder, each for a shard of
// its own.
class RunFolder {
 public:
  // Creates what is missing, takes the shard's lock, and clears what a dead process of this shard left half
  // written. Throws Error(ExitCode::output), also when another process draws this shard, the
  // whole run, or a shard of another number of them.
  RunFolder(std::string path, const Shard& shard);

  // Makes sure that run.json ends with this configuration, and gives its number there. Throws
  // Error(ExitCode::usage) naming the keys that differ, unless `force` adds the new one.
  int configure(const Json& configuration, bool force);

  // Writes a picture and then its line; what was told survives a crash of the machine. Throws
  // Error(ExitCode::output).
  void add(const Record& record, std::string_view png);
  // The line of a picture that could not be drawn.
  void add_failed(const Record& record);

  const std::string& path() const { return path_; }

 private:
  std::string path_, shard_;
  std::optional<FileLock> whole_, own_, division_;
  std::optional<LineFile> manifest_;
};

// Paths of the manifests in a run's folder, sorted; none when there is no folder yet.
std::vector<std::string> manifests(const std::string& folder);

// One record a picture, by index and repeat: of those that tell of a file, else of all, the last of the
// newest configuration.
std::vector<Record> latest(std::vector<Record> records);

// That of all manifests in a run's folder. Torn last lines are passed over. Throws Error(ExitCode::input)
// with the position of other lines that are none.
std::vector<Record> read_records(const std::string& folder);

// Configurations of a run, the latest last. Throws Error(ExitCode::input).
std::vector<Json> read_configurations(const std::string& folder);

// What of a configuration decides the pictures: not where captions and bundle lie, whose checksums stand
// beside them.
Json without_places(Json configuration);

// Index and repeat of pictures.
using PictureSet = std::set<std::pair<std::size_t, std::size_t>>;
// The pictures of the manifests that are there, by their size, with `verify` by their checksum. Throws what
// read_records throws.
PictureSet present_pictures(const std::string& folder, bool verify);

}  // namespace lamplighter
