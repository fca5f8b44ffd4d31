#include "batch/folder.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <thread>
#include <utility>

#include "base/files.h"
#include "lamplighter/error.h"

namespace lamplighter {
namespace {

namespace fs = std::filesystem;

constexpr int kSchema = 1;

void create_folder(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw Error(ExitCode::output, "cannot create folder " + path + ": " + error.message());
}

// Keys of the newer configuration that the older one has otherwise, or not.
std::string differing(const Json& older_whole, const Json& newer_whole) {
  const Json older = without_places(older_whole), newer = without_places(newer_whole);
  std::string keys;
  const auto note = [&](const std::string& key, const Json& before, const Json& now) {
    keys += (keys.empty() ? "" : ", ") + key + " (" + before.dump() + ", now " + now.dump() + ")";
  };
  for (const auto& [key, value] : newer.items()) {
    const Json before = older.value(key, Json());
    if (before != value) note(key, before, value);
  }
  for (const auto& [key, value] : older.items()) {
    if (!newer.contains(key)) note(key, value, Json());
  }
  return keys;
}

bool is_manifest(const std::string& name) {
  return name == "manifest.jsonl" ||
         (name.rfind("manifest-", 0) == 0 && fs::path(name).extension() == ".jsonl");
}

void read_lines(const std::string& path, std::vector<Record>& records) {
  const std::string text = read_file(path);
  std::size_t number = 0;
  for (std::size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string where = path + " line " + std::to_string(++number);
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    records.push_back(parse_record(parse_json(line, where, ExitCode::input), where));
  }
}

// Somebody who asks where a run stands looks at its locks for an instant.
std::optional<FileLock> take_lock(const std::string& path, bool exclusive) {
  constexpr int kTries = 5;
  for (int tried = 1;; ++tried) {
    std::optional<FileLock> lock = FileLock::take(path, exclusive);
    if (lock || tried == kTries) return lock;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

// Shards of another number, the file name of their lock: with them, pictures would be drawn twice. Empty:
// there are none.
std::string other_division(const std::string& temporary, const std::string& own) {
  for (const fs::directory_entry& entry : fs::directory_iterator(temporary)) {
    const std::string name = entry.path().filename();
    if (name.rfind("lock-of-", 0) == 0 && name != own && FileLock::is_taken(entry.path())) return name;
  }
  return "";
}

bool is_present(const std::string& folder, const Record& record, bool verify) {
  if (record.is_failed()) return false;
  const std::string path = join_path(folder, record.file);
  std::error_code error;
  const auto bytes = fs::file_size(path, error);
  if (error || bytes != record.bytes) return false;
  return !verify || sha256_file(path, ExitCode::output) == record.sha256;
}

}  // namespace

Json without_places(Json configuration) {
  configuration.erase("captions");
  configuration.erase("bundle");
  return configuration;
}

RunFolder::RunFolder(std::string path, const Shard& shard) : path_(std::move(path)), shard_(shard.name()) {
  create_folder(join_path(path_, "images"));
  const std::string temporary = join_path(path_, ".tmp");
  create_folder(temporary);
  const auto locked = [](const std::string& what) {
    throw Error(ExitCode::output,
                what + " is being drawn by another process; wait for it, or take another folder");
  };
  whole_ = take_lock(join_path(temporary, "lock"), shard_.empty());
  if (!whole_) locked(path_);
  if (!shard_.empty()) {
    own_ = take_lock(join_path(temporary, "lock-" + shard_), true);
    if (!own_) locked("shard " + shard_ + " of " + path_);
    const std::string division = "lock-of-" + std::to_string(shard.count);
    division_ = take_lock(join_path(temporary, division), false);
    const std::string other = other_division(temporary, division);
    if (!division_ || !other.empty()) locked(path_ + ", in shards of another number (" + other + "),");
  }
  std::error_code ignored;
  fs::remove(join_path(temporary, "picture" + shard_), ignored);
  manifest_.emplace(join_path(path_, shard_.empty() ? "manifest.jsonl" : "manifest-" + shard_ + ".jsonl"));
}

int RunFolder::configure(const Json& configuration, bool force) {
  const FileLock lock = FileLock::wait(join_path(path_, ".tmp/lock-run"));
  const std::string file = join_path(path_, "run.json");
  std::vector<Json> configurations;
  if (fs::exists(file)) configurations = read_configurations(path_);
  if (!configurations.empty()) {
    const std::string keys = differing(configurations.back(), configuration);
    if (keys.empty()) return static_cast<int>(configurations.size()) - 1;
    if (!force) {
      throw Error(ExitCode::usage,
                  path_ + " was begun with another configuration: " + keys +
                      "; give the old one, another folder, or --force-config to go on with the new one");
    }
  }
  configurations.push_back(configuration);
  publish_file(file, join_path(path_, ".tmp/run"),
               Json{{"schema", kSchema}, {"configurations", configurations}}.dump(2) + "\n");
  return static_cast<int>(configurations.size()) - 1;
}

void RunFolder::add(const Record& record, std::string_view png) {
  publish_file(join_path(path_, record.file), join_path(path_, ".tmp/picture" + shard_), png);
  manifest_->append(to_json(record).dump());
}

void RunFolder::add_failed(const Record& record) {
  manifest_->append(to_json(record).dump());
}

std::vector<std::string> manifests(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  if (!fs::is_directory(folder, error)) return files;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (is_manifest(entry.path().filename().string())) files.push_back(entry.path().string());
  }
  if (error) throw Error(ExitCode::input, "cannot read folder " + folder + ": " + error.message());
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<Record> latest(std::vector<Record> records) {
  std::map<std::pair<std::size_t, std::size_t>, Record> by_place;
  for (Record& record : records) {
    const auto rank = [](const Record& one) { return std::pair{!one.is_failed(), one.configuration}; };
    const std::pair place{record.index, record.repeat};
    const auto known = by_place.find(place);
    if (known == by_place.end() || rank(record) >= rank(known->second))
      by_place.insert_or_assign(place, std::move(record));
  }
  records.clear();
  for (auto& [place, record] : by_place) records.push_back(std::move(record));
  return records;
}

std::vector<Record> read_records(const std::string& folder) {
  std::vector<Record> records;
  for (const std::string& file : manifests(folder)) read_lines(file, records);
  return latest(std::move(records));
}

std::vector<Json> read_configurations(const std::string& folder) {
  const std::string file = join_path(folder, "run.json");
  const Json json = parse_json(read_file(file), file, ExitCode::input);
  JsonReader reader(json, file, ExitCode::input);
  reader.integer("schema", kSchema, kSchema);
  const Json& configurations = reader.value("configurations");
  const bool fits = configurations.is_array() && !configurations.empty() &&
                    std::all_of(configurations.begin(), configurations.end(),
                                [](const Json& each) { return each.is_object(); });
  if (!fits) reader.reject("configurations", "an array of objects");
  return {configurations.begin(), configurations.end()};
}

PictureSet present_pictures(const std::string& folder, bool verify) {
  PictureSet present;
  for (const Record& record : read_records(folder)) {
    if (is_present(folder, record, verify)) present.emplace(record.index, record.repeat);
  }
  return present;
}

}  // namespace lamplighter
