#include "batch/collect.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "base/durable.h"
#include "base/files.h"
#include "batch/folder.h"
#include "batch/gallery/gallery.h"
#include "batch/layout.h"
#include "batch/natural.h"
#include "lamplighter/error.h"

namespace lamplighter {
namespace {

namespace fs = std::filesystem;

// Replaces a file unless it holds these bytes already.
void write_if_changed(const std::string& folder, const std::string& name, const std::string& bytes) {
  const std::string path = join_path(folder, name);
  if (fs::exists(path) && read_file(path) == bytes) return;
  publish_file(path, join_path(folder, ".tmp/" + name), bytes);
}

std::string line(const Json& json) {
  return to_text(json) + "\n";
}

void write_captions(const std::string& folder, std::vector<const Record*> pictures) {
  // Scoring tools pair captions with pictures in the natural order of names.
  std::sort(pictures.begin(), pictures.end(),
            [](const Record* a, const Record* b) { return natural_less(a->file, b->file); });
  Json captions = Json::array();
  std::string metadata;
  for (const Record* record : pictures) {
    captions.push_back(record->text());
    Json json{{"file_name", record->file}, {"text", record->text()}, {"seed", record->seed}};
    if (!record->id.empty()) json["id"] = record->id;
    if (record->image_id) json["image_id"] = *record->image_id;
    metadata += line(json);
  }
  write_if_changed(folder, "captions.json",
                   captions.dump(4, ' ', false, Json::error_handler_t::replace) + "\n");
  write_if_changed(folder, "metadata.jsonl", metadata);
}

std::string text(const Json& configuration, const char* key) {
  const Json value = configuration.value(key, Json());
  return value.is_string() ? value.get<std::string>() : "";
}

void write_page(const std::string& folder, const Json& configuration, const std::vector<Record>& records) {
  GalleryFacts facts;
  facts.title = fs::path(text(configuration, "captions")).filename().string();
  facts.model = text(configuration, "model");
  const Json planned = configuration.value("pictures", Json());
  if (planned.is_number_unsigned()) facts.planned = planned.get<std::size_t>();
  write_if_changed(folder, "index.html", gallery_page(facts, records));
}

FileLock lock_summary(const std::string& folder) {
  return FileLock::wait(join_path(folder, ".tmp/lock-collect"));
}

void collect_locked(const std::string& folder) {
  const Json configuration = read_configurations(folder).back();
  const std::vector<Record> records = read_records(folder);
  std::vector<const Record*> pictures;
  std::vector<Record> complete;
  for (const Record& record : records) {
    if (!record.is_failed()) pictures.push_back(&record);
  }
  write_captions(folder, pictures);
  write_page(folder, configuration, records);
  const Layout& layout = find_layout(text(configuration, "layout"));
  if (layout.arrange == nullptr) return;
  for (const Record* record : pictures) complete.push_back(*record);
  layout.arrange(folder, complete);
}

// The pictures and manifests of another folder of the same run.
void take_over(const std::string& folder, const std::string& other) {
  const auto run_of = [](const std::string& of) { return without_places(read_configurations(of).back()); };
  if (run_of(folder) != run_of(other)) {
    throw Error(ExitCode::usage,
                "merge: " + other + " belongs to another run than " + folder + ": their run.json differ");
  }
  for (const Record& record : read_records(other)) {
    if (record.is_failed()) continue;
    const std::string bytes = read_file(join_path(other, record.file), ExitCode::output);
    publish_file(join_path(folder, record.file), join_path(folder, ".tmp/merged"), bytes);
  }
}

}  // namespace

void collect(const std::string& folder) {
  const FileLock lock = lock_summary(folder);
  collect_locked(folder);
}

void write_gallery(const std::string& folder) {
  const FileLock lock = lock_summary(folder);
  write_page(folder, read_configurations(folder).back(), read_records(folder));
}

void merge(const std::string& folder, const std::vector<std::string>& others) {
  const std::optional<FileLock> whole = FileLock::take(join_path(folder, ".tmp/lock"), true);
  if (!whole)
    throw Error(ExitCode::output, folder + " is being drawn by another process; merge when it is done");
  std::vector<Record> records = read_records(folder);
  for (const std::string& other : others) {
    take_over(folder, other);
    for (Record& record : read_records(other)) records.push_back(std::move(record));
  }
  const std::vector<Record> joined = latest(std::move(records));
  std::string manifest;
  for (const Record& record : joined) manifest += line(to_json(record));
  publish_file(join_path(folder, "manifest.jsonl"), join_path(folder, ".tmp/manifest"), manifest);
  for (const std::string& file : manifests(folder)) {
    if (fs::path(file).filename() != "manifest.jsonl") fs::remove(file);
  }
  const FileLock lock = lock_summary(folder);
  collect_locked(folder);
}

}  // namespace lamplighter
