#include "tools/output_flags.h"

#include <algorithm>
#include <memory>

#include "base/format.h"
#include "base/limits.h"
#include "base/message.h"
#include "image/acceptance_map.h"
#include "lamplighter/error.h"
#include "lamplighter/outputs.h"
#include "pipeline/output/codes_file.h"

namespace lamplighter::cli {
namespace {

struct SinkInput {
  const std::string& path;
  const Origin& origin;
  TextToImage& engine;
  bool overwrite;
};

enum class Kind { text, image, figure };

struct Output {
  const char *flag, *help;
  Kind kind;
  std::unique_ptr<Sink> (*make)(const SinkInput& input);
  Extent (*extent)(std::int64_t count, const Extent& image) = nullptr;  // of a file that grows with the run
  bool needs_codes = false;
  bool shows_drafts = false;
};

constexpr Output kOutputs[] = {
    {"--grid", "Also write all images on one contact sheet", Kind::image,
     [](const SinkInput& input) { return sheet_sink(input.path, input.overwrite); },
     [](std::int64_t count, const Extent& image) { return square_sheet_extent(count, image); }},
    {"--save-codes",
     "Also write the image tokens, for `lamplighter decode`, or as tensors for other programs; .json, "
     ".safetensors",
     Kind::text, [](const SinkInput& input) { return codes_sink(input.origin, input.path, input.overwrite); },
     nullptr, true},
    {"--trace",
     "Also write every image's settings and cycles, with what they drafted and refused, as JSON lines",
     Kind::text, [](const SinkInput& input) { return trace_sink(input.origin, input.path, input.overwrite); },
     nullptr, false, true},
    {"--acceptance-map",
     "Also write every image beside its tokens, coloured by tokens per cycle; .png, .svg, .pdf", Kind::figure,
     [](const SinkInput& input) { return acceptance_map_sink(input.path, input.overwrite); },
     acceptance_map_extent},
    {"--growth", "Also write six stages of every image, coloured in the same way; .png, .svg, .pdf",
     Kind::figure, [](const SinkInput& input) { return growth_sink(input.path, input.overwrite); },
     growth_strips_extent},
    {"--preview", "Rewrite this image whenever a row of tokens is complete", Kind::image,
     [](const SinkInput& input) {
       TextToImage& engine = input.engine;
       return preview_sink(
           input.path, [&engine](const Codes& codes) { return engine.decode(codes); }, input.overwrite);
     },
     nullptr, true},
};

void check_name(const Output& output, const std::string& path) {
  if (output.kind == Kind::image) check_image_name(output.flag, path);
  if (output.kind == Kind::text && output.needs_codes) check_codes_name(output.flag, path);
  const std::string expected = output.kind == Kind::figure ? refuse_figure_name(path) : "";
  if (!expected.empty())
    throw Error(ExitCode::usage,
                std::string(output.flag) + ": got " + quote(path) + ", expected " + expected);
}

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
    check_name(kOutputs[i], paths_[i]);
    if (paths_[i].find_first_of("%{") != std::string::npos)
      throw Error(ExitCode::usage, std::string(kOutputs[i].flag) + ": got " + quote(paths_[i]) +
                                       ", expected one name: all images go into one file");
    wanted.push_back(paths_[i]);
  }
  return wanted;
}

bool OutputFlags::show_drafts() const {
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    if (!paths_[i].empty() && kOutputs[i].shows_drafts) return true;
  }
  return false;
}

void OutputFlags::check_tokens(const Manifest& manifest) const {
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    if (!paths_[i].empty() && kOutputs[i].needs_codes && manifest.is_continuous())
      throw Error(ExitCode::usage, std::string(kOutputs[i].flag) + ": got " + quote(paths_[i]) +
                                       ", expected none: the tokens of " + manifest.name +
                                       " are continuous, not codes");
  }
}

std::string OutputFlags::codes_alone(const Manifest& manifest) const {
  std::string codes;
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    if (paths_[i].empty()) continue;
    if (kOutputs[i].kind != Kind::text)
      throw Error(ExitCode::usage, std::string(kOutputs[i].flag) + ": got " + quote(paths_[i]) +
                                       ", expected none: bundle " + manifest.name +
                                       " has no image decoder, it generates codes");
    if (kOutputs[i].needs_codes) codes = paths_[i];
  }
  return codes;
}

void OutputFlags::check_room(std::int64_t count, const Extent& image) const {
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    if (paths_[i].empty() || kOutputs[i].extent == nullptr) continue;
    const Extent extent = kOutputs[i].extent(count, image);
    if (std::max(extent.width, extent.height) <= limits::kImageSide) continue;
    throw Error(ExitCode::usage, std::string(kOutputs[i].flag) + ": got " + std::to_string(count) +
                                     " images, which take " + sides(extent.width, extent.height) +
                                     " pixels, expected at most " + std::to_string(limits::kImageSide) +
                                     " a side; generate fewer");
  }
}

void OutputFlags::add_sinks(const Origin& origin, TextToImage& engine, bool overwrite, Sinks& sinks) const {
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    if (!paths_[i].empty()) sinks.push_back(kOutputs[i].make({paths_[i], origin, engine, overwrite}));
  }
}

}  // namespace lamplighter::cli
