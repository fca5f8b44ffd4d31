#include "output_flags.h"

#include <memory>

#include "lamplighter/outputs.h"

namespace lamplighter::cli {
namespace {

// What sinks are made from.
struct Place {
  const std::string& path;
  const Origin& origin;
  TextToImage& engine;
};

struct Output {
  const char *flag, *help;
  bool is_picture;
  std::unique_ptr<Sink> (*make)(const Place& place);
};

constexpr Output kOutputs[] = {
    {"--grid", "Also write all pictures on one sheet", true,
     [](const Place& place) { return sheet_sink(place.path); }},
    {"--save-codes", "Also write the image tokens, for `lamplighter decode`", false,
     [](const Place& place) { return codes_sink(place.origin, place.path); }},
    {"--trace", "Also write every cycle of every picture, as JSON lines", false,
     [](const Place& place) { return trace_sink(place.path); }},
    {"--acceptance-map", "Also write the pictures beside their tokens, coloured by how many came at once",
     true, [](const Place& place) { return acceptance_map_sink(place.path); }},
    {"--preview", "Rewrite this picture whenever a row of tokens is complete", true,
     [](const Place& place) {
       TextToImage& engine = place.engine;
       return preview_sink(place.path, [&engine](const Codes& codes) { return engine.decode(codes); });
     }},
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
    wanted.push_back(paths_[i]);
  }
  return wanted;
}

void OutputFlags::add_sinks(const Origin& origin, TextToImage& engine, Sinks& sinks) const {
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    if (!paths_[i].empty()) sinks.push_back(kOutputs[i].make({paths_[i], origin, engine}));
  }
}

}  // namespace lamplighter::cli
