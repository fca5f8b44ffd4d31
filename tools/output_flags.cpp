#include "output_flags.h"

#include <algorithm>
#include <memory>

#include "base/limits.h"
#include "base/message.h"
#include "image/acceptance_map.h"
#include "lamplighter/error.h"
#include "lamplighter/outputs.h"

namespace lamplighter::cli {
namespace {

// What sinks are made from.
struct Place {
  const std::string& path;
  const Origin& origin;
  TextToImage& engine;
  bool overwrite;
};

struct Output {
  const char *flag, *help;
  bool is_picture;
  std::unique_ptr<Sink> (*make)(const Place& place);
  Extent (*extent)(std::int64_t count, const Extent& picture) = nullptr;  // where it grows with the pictures
  bool needs_codes = false;
};

constexpr Output kOutputs[] = {
    {"--grid", "Also write all pictures on one sheet", true,
     [](const Place& place) { return sheet_sink(place.path, place.overwrite); },
     [](std::int64_t count, const Extent& picture) { return square_sheet_extent(count, picture); }},
    {"--save-codes", "Also write the image tokens, for `lamplighter decode`", false,
     [](const Place& place) { return codes_sink(place.origin, place.path, place.overwrite); }, nullptr, true},
    {"--trace", "Also write every picture's settings and cycles, as JSON lines", false,
     [](const Place& place) { return trace_sink(place.origin, place.path, place.overwrite); }},
    {"--acceptance-map", "Also write the pictures beside their tokens, coloured by how many came at once",
     true, [](const Place& place) { return acceptance_map_sink(place.path, place.overwrite); },
     acceptance_map_extent},
    {"--growth", "Also write six moments of every picture, coloured in the same way", true,
     [](const Place& place) { return growth_sink(place.path, place.overwrite); }, growth_strips_extent},
    {"--preview", "Rewrite this picture whenever a row of tokens is complete", true,
     [](const Place& place) {
       TextToImage& engine = place.engine;
       return preview_sink(
           place.path, [&engine](const Codes& codes) { return engine.decode(codes); }, place.overwrite);
     },
     nullptr, true},
};

}  // namespace

OutputFlags::OutputFlags() : paths_(std::size(kOutputs)) {}

void OutputFlags::add(CLI::App& command) {
  for (std::size_t i = 0; i < paths_.size(); ++i)
    command.add_option(kOutputs[i].flag, paths_[i], kOutputs[i].help)->type_name("FILE");
}

std::vector<std::string> OutputFlags::paths() const {
  std::vector<std::string> wanted;
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    if (paths_[i].empty()) continue;
    if (kOutputs[i].is_picture) check_picture_name(kOutputs[i].flag, paths_[i]);
    if (paths_[i].find_first_of("%{") != std::string::npos)
      throw Error(ExitCode::usage, std::string(kOutputs[i].flag) + ": got " + quote(paths_[i]) +
                                       ", expected one name: all pictures go into one file");
    wanted.push_back(paths_[i]);
  }
  return wanted;
}

void OutputFlags::check_tokens(const Manifest& manifest) const {
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    if (!paths_[i].empty() && kOutputs[i].needs_codes && manifest.is_continuous())
      throw Error(ExitCode::usage, std::string(kOutputs[i].flag) + ": got " + quote(paths_[i]) +
                                       ", expected none: the tokens of " + manifest.name +
                                       " are continuous, not codes");
  }
}

void OutputFlags::check_room(std::int64_t count, const Extent& picture) const {
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    if (paths_[i].empty() || kOutputs[i].extent == nullptr) continue;
    const Extent extent = kOutputs[i].extent(count, picture);
    if (std::max(extent.width, extent.height) <= limits::kPngSide) continue;
    throw Error(ExitCode::usage, std::string(kOutputs[i].flag) + ": got " + std::to_string(count) +
                                     " pictures, which take " + std::to_string(extent.width) + "x" +
                                     std::to_string(extent.height) + " pixels, expected at most " +
                                     std::to_string(limits::kPngSide) + " a side; draw fewer");
  }
}

void OutputFlags::add_sinks(const Origin& origin, TextToImage& engine, bool overwrite, Sinks& sinks) const {
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    if (!paths_[i].empty()) sinks.push_back(kOutputs[i].make({paths_[i], origin, engine, overwrite}));
  }
}

}  // namespace lamplighter::cli
