#include "batch/layout.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/create_folder.h"
#include "base/durable.h"
#include "base/files.h"
#include "base/message.h"
#include "base/suggestion.h"
#include "lamplighter/error.h"
#include "lamplighter/image.h"
#include "pipeline/output/name_pattern.h"

namespace lamplighter {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kGridImages = 4;  // DPG-Bench's two by two

std::string padded(std::size_t number) {
  const std::string figures = std::to_string(number);
  return figures.size() < 5 ? std::string(5 - figures.size(), '0') + figures : figures;
}

std::string line(const Json& json) {
  return to_text(json) + "\n";
}

// GenEval reads FOLDER/00000/metadata.jsonl and FOLDER/00000/samples/00000.png. The samples are links, so
// that images are stored once.
void arrange_geneval(const std::string& folder, const std::vector<Record>& images) {
  for (const Record& record : images) {
    const fs::path record_folder = fs::path(folder) / "geneval" / padded(record.index);
    const fs::path sample = record_folder / "samples" / (padded(record.repeat) + ".png");
    std::error_code error;
    const fs::path image = fs::path("../../..") / record.file;
    if (fs::read_symlink(sample, error) == image) continue;
    create_folder((record_folder / "samples").string());
    fs::remove(sample, error);
    const Json fields = record.fields.is_object() ? record.fields : Json{{"prompt", record.caption}};
    publish_file((record_folder / "metadata.jsonl").string(), join_path(folder, ".tmp/metadata"),
                 line(fields));
    fs::create_symlink(image, sample, error);
    if (error) throw Error(ExitCode::output, "cannot link " + sample.string() + ": " + error.message());
  }
}

// Whether a grid is newer than all of its images.
bool is_newer(const std::string& grid, const std::string& folder, const std::vector<const Record*>& images) {
  std::error_code error;
  const auto written = fs::last_write_time(grid, error);
  return !error && std::all_of(images.begin(), images.end(), [&](const Record* image) {
    return fs::last_write_time(join_path(folder, image->file), error) <= written && !error;
  });
}

// DPG-Bench reads one file per caption, a grid of four images, named like the caption.
void arrange_dpg(const std::string& folder, const std::vector<Record>& images) {
  const fs::path grids = fs::path(folder) / "dpg";
  create_folder(grids.string());
  std::map<std::size_t, std::vector<const Record*>> by_caption;
  for (const Record& record : images) by_caption[record.index].push_back(&record);
  for (const auto& [index, records] : by_caption) {
    const std::string name = is_plain_name(records[0]->id) ? records[0]->id : padded(index);
    const std::string grid = (grids / (name + ".png")).string();
    if (records.size() != kGridImages || is_newer(grid, folder, records)) continue;
    std::vector<Image> cells;
    for (const Record* record : records) cells.push_back(read_image(join_path(folder, record->file)));
    publish_file(grid, join_path(folder, ".tmp/grid"), encode_png(contact_sheet(cells, 2, 0)));
  }
}

}  // namespace

const std::vector<Layout>& layouts() {
  static const std::vector<Layout> all{
      {"flat", "images/00000.png by number", "{index:05d}", nullptr},
      {"coco", "images/000000000139.png by COCO's image_id", "{image_id:012d}", nullptr},
      {"geneval", "GenEval's tree geneval/00000/samples beside images/", "{index:05d}_{repeat:05d}",
       arrange_geneval},
      {"dpg", "DPG-Bench's grids of four dpg/ID.png beside images/", "{id}_{repeat}", arrange_dpg},
      {"longtext", "images/ID_0.png, as LongText-Bench reads them", "{id}_{repeat}", nullptr},
  };
  return all;
}

const Layout& find_layout(const std::string& name) {
  for (const Layout& layout : layouts()) {
    if (name == layout.name) return layout;
  }
  throw Error(ExitCode::usage, "layout: got " + quote(name) + ", expected " + list_of(layout_names()));
}

std::vector<std::string> layout_names() {
  std::vector<std::string> names;
  for (const Layout& layout : layouts()) names.emplace_back(layout.name);
  return names;
}

}  // namespace lamplighter
