#include "batch/rearrange.h"

#include <filesystem>

#include "base/create_folder.h"
#include "base/durable.h"
#include "base/files.h"
#include "batch/folder.h"
#include "batch/layout.h"
#include "lamplighter/error.h"

namespace lamplighter {
namespace {

namespace fs = std::filesystem;

bool is_file_of(const std::string& path, const Record& record, bool verify) {
  std::error_code error;
  const auto bytes = fs::file_size(path, error);
  if (error || bytes != record.bytes) return false;
  return !verify || sha256_file(path, ExitCode::output) == record.sha256;
}

// Files on their way to new names; a crash leaves them here.
std::string moving_path(const std::string& folder, const std::string& file) {
  return join_path(folder, ".tmp/moved/" + fs::path(file).filename().string());
}

bool is_present(const std::string& folder, const Record& record, bool verify) {
  return !record.is_failed() && (is_file_of(join_path(folder, record.file), record, verify) ||
                                 is_file_of(moving_path(folder, record.file), record, verify));
}

void rename_file(const std::string& from, const std::string& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (error) throw Error(ExitCode::output, "cannot rename " + from + " to " + to + ": " + error.message());
}

// A second name for a file, or a copy where the file system has no links.
void link_file(const std::string& from, const std::string& to) {
  std::error_code error;
  fs::create_hard_link(from, to, error);
  if (error) publish_file(to, to + ".part", read_file(from, ExitCode::output));
}

// Moves images that the plan has no use for, and the folders of layouts, out of the way.
void put_aside(const std::string& folder, const Arrangement& arrangement, std::size_t configuration) {
  const std::string aside = join_path(folder, "replaced/" + std::to_string(configuration));
  for (const Record& record : arrangement.replaced) {
    create_folder(join_path(aside, "images"));
    rename_file(join_path(folder, record.file), join_path(aside, record.file));
  }
  for (const Layout& layout : layouts()) {
    const std::string arranged = join_path(folder, layout.name);
    if (layout.arrange == nullptr || !fs::exists(arranged)) continue;
    create_folder(aside);
    fs::remove_all(join_path(aside, layout.name));
    rename_file(arranged, join_path(aside, layout.name));
  }
}

}  // namespace

Arrangement arrange_images(const std::string& folder, const Plan& plan, bool verify) {
  return arrange(plan, read_records(folder),
                 [&](const Record& record) { return is_present(folder, record, verify); });
}

void finish_moves(const std::string& folder) {
  const std::string moved = join_path(folder, ".tmp/moved");
  if (!fs::exists(moved)) return;
  for (const Record& record : read_records(folder)) {
    const std::string from = moving_path(folder, record.file);
    if (!record.is_failed() && is_file_of(from, record, true))
      rename_file(from, join_path(folder, record.file));
  }
  fs::remove_all(moved);
}

void rearrange(const std::string& folder, const Arrangement& arrangement, std::size_t configuration) {
  if (!arrangement.moves.empty()) create_folder(join_path(folder, ".tmp/moved"));
  for (const auto& [from, to] : arrangement.moves)
    link_file(join_path(folder, from), moving_path(folder, to));
  std::string lines;
  for (const Record& record : latest(arrangement.records)) lines += to_text(to_json(record)) + "\n";
  publish_file(join_path(folder, "manifest.jsonl"), join_path(folder, ".tmp/manifest"), lines);
  for (const std::string& file : manifests(folder)) {
    if (fs::path(file).filename() != "manifest.jsonl") fs::remove(file);
  }
  put_aside(folder, arrangement, configuration);
  for (const auto& [from, to] : arrangement.moves) fs::remove(join_path(folder, from));
  for (const auto& [from, to] : arrangement.moves)
    rename_file(moving_path(folder, to), join_path(folder, to));
  fs::remove_all(join_path(folder, ".tmp/moved"));
}

}  // namespace lamplighter
