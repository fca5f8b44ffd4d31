#pragma once

#include <cstddef>
#include <cstdint>
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
//   images/          finished images only
//   run.json         the configuration, to repeat the run
//   manifest.jsonl   a line per image, in the order of completion; manifest-0003-of-0016.jsonl for a shard
//   captions.json    the captions, in natural order of the image names
//   metadata.jsonl   the same with file names, for Hugging Face's imagefolder
//   index.html       the gallery
//   replaced/        images that the plan has no use for
//   .tmp/            locks and unfinished files
namespace lamplighter {

struct Plan;

// Write access of one shard to a run's folder. Several processes may share a folder, one per shard.
class RunFolder {
 public:
  // Creates missing folders, takes the shard's lock and removes unfinished files of a dead process. Throws
  // Error(ExitCode::output); also when another process generates this shard, the whole run, or a run with
  // another number of shards.
  RunFolder(std::string path, const Shard& shard);

  // Makes this configuration one of run.json and returns its index there. Moves the images that the folder
  // has to the names of `plan`, if there is one, and images that the plan has no use for to
  // replaced/. Throws Error(ExitCode::usage) with the keys that differ from the last configuration, unless
  // `force`, or the plan extends the run: by captions at the end, a larger limit, more repeats or another
  // seed. Throws Error(ExitCode::output) when images have to move while other processes generate.
  int configure(const Json& configuration, bool force, const Plan* plan = nullptr);
  std::size_t replaced() const { return replaced_; }  // images that configure moved to replaced/

  // Writes an image and then its line in the manifest. Both survive a crash of the machine. Throws
  // Error(ExitCode::output).
  void add(const Record& record, std::string_view png);
  // Records that an image could not be generated.
  void add_failed(const Record& record);

  const std::string& path() const { return path_; }

 private:
  std::string manifest_path() const;
  int find_configuration(const std::vector<Json>& known, const Json& configuration, bool force,
                         bool captions_extend) const;

  std::string path_, shard_;
  std::size_t replaced_ = 0;
  std::optional<FileLock> whole_, own_, division_, generating_;
  std::optional<LineFile> manifest_;
};

// Paths of all manifests in a run's folder, sorted; none when the folder does not exist.
std::vector<std::string> manifests(const std::string& folder);

// Keeps one record per image, by run seed, index and repeat. Records with a file win over failures, then the
// newest configuration, then the last line.
std::vector<Record> latest(std::vector<Record> records);

// Reads all manifests of a run, one record per image. Ignores unfinished last lines. Throws
// Error(ExitCode::input) with the position of a malformed line.
std::vector<Record> read_records(const std::string& folder);

// All configurations of a run, the newest last. Throws Error(ExitCode::input).
std::vector<Json> read_configurations(const std::string& folder);

// A configuration without the paths of captions and bundle: their checksums decide the images.
Json without_paths(Json configuration);

// Images that the last configurations of all run seeds plan.
std::optional<std::size_t> planned_images(const std::vector<Json>& configurations);

// Whether the first configuration of a run has another seed than `seed`.
bool has_other_seed(const std::string& folder, std::uint64_t seed);

// Images by index and repeat.
using ImageSet = std::set<std::pair<std::size_t, std::size_t>>;
// Images of a plan that exist with the right size; with `verify`, with the right checksum. Throws like
// read_records.
ImageSet present_images(const std::string& folder, const Plan& plan, bool verify);

}  // namespace lamplighter
