#include "batch/layout.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/durable.h"
#include "base/files.h"
#include "base/message.h"
#include "lamplighter/error.h"
#include "lamplighter/image.h"
#include "pipeline/outputs/name_pattern.h"

namespace lamplighter {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kGridPictures = 4;  // of DPG-Bench, two by two

void create_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw Error(ExitCode::output, "cannot create folder " + path.string() + ": " + error.message());
}

std::string padded(std::size_t number) {
  const std::string figures = std::to_string(number);
  return figures.size() < 5 ? std::string(5 - figures.size(), '0') + figures : figures;
}

std::string line(const Json& json) {
  return to_text(json) + "\n";
}

// GenEval reads FOLDER/00000/metadata.jsonl and FOLDER/00000/samples/00000.png. The samples are links to the
// pictures, so that every picture lies on the disk once.
void arrange_geneval(const std::string& folder, const std::vector<Record>& pictures) {
  for (const Record& record : pictures) {
    const fs::path place = fs::path(folder) / "geneval" / padded(record.index);
    const fs::path sample = place / "samples" / (padded(record.repeat) + ".png");
    std::error_code error;
    const fs::path picture = fs::path("../../..") / record.file;
    if (fs::read_symlink(sample, error) == picture) continue;
    create_folder(place / "samples");
    fs::remove(sample, error);
    const Json fields = record.fields.is_object() ? record.fields : Json{{"prompt", record.caption}};
    publish_file((place / "metadata.jsonl").string(), join_path(folder, ".tmp/metadata"), line(fields));
    fs::create_symlink(picture, sample, error);
    if (error) throw Error(ExitCode::output, "cannot link " + sample.string() + ": " + error.message());
  }
}

// Whether a grid stands that was written after all of its pictures.
bool is_newer(const std::string& grid, const std::string& folder,
              const std::vector<const Record*>& pictures) {
  std::error_code error;
  const auto written = fs::last_write_time(grid, error);
  return !error && std::all_of(pictures.begin(), pictures.end(), [&](const Record* picture) {
    return fs::last_write_time(join_path(folder, picture->file), error) <= written && !error;
  });
}

// DPG-Bench reads one picture a caption, its four pictures two by two, by the caption's name.
void arrange_dpg(const std::string& folder, const std::vector<Record>& pictures) {
  const fs::path grids = fs::path(folder) / "dpg";
  create_folder(grids);
  std::map<std::size_t, std::vector<const Record*>> by_caption;
  for (const Record& record : pictures) by_caption[record.index].push_back(&record);
  for (const auto& [index, records] : by_caption) {
    const std::string name = is_plain_name(records[0]->id) ? records[0]->id : padded(index);
    const std::string grid = (grids / (name + ".png")).string();
    if (records.size() != kGridPictures || is_newer(grid, folder, records)) continue;
    std::vector<Image> images;
    for (const Record* record : records) images.push_back(read_png(join_path(folder, record->file)));
    publish_file(grid, join_path(folder, ".tmp/grid"), encode_png(contact_sheet(images, 2, 0)));
  }
}

}  // namespace

const std::vector<Layout>& layouts() {
  static const std::vector<Layout> all{
      {"flat", "images/00000.png by number", "{index:05d}", 0, nullptr},
      {"coco", "images/000000000139.png by COCO's image_id", "{image_id:012d}", 0, nullptr},
      {"geneval", "GenEval's tree geneval/00000/samples beside images/", "{index:05d}_{repeat:05d}", 4,
       arrange_geneval},
      {"dpg", "DPG-Bench's grids of four dpg/ID.png beside images/", "{id}_{repeat}", 4, arrange_dpg},
      {"longtext", "images/ID_0.png, as LongText-Bench reads them", "{id}_{repeat}", 0, nullptr},
  };
  return all;
}

const Layout& find_layout(const std::string& name) {
  for (const Layout& layout : layouts()) {
    if (name == layout.name) return layout;
  }
  throw Error(ExitCode::usage, "layout: got " + quote(name) + ", expected " + layout_names());
}

std::string layout_names() {
  std::string names;
  for (const Layout& layout : layouts()) names += (names.empty() ? "" : ", ") + std::string(layout.name);
  return names;
}

}  // namespace lamplighter
