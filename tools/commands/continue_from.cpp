#include "continue_from.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/format.h"
#include "image/formats.h"
#include "image/png_chunks.h"
#include "lamplighter/error.h"
#include "pipeline/output/codes_file.h"
#include "tools/help.h"

namespace lamplighter::cli {
namespace {

// How many of the codes are kept.
std::int64_t count_kept(const ContinueFlags& flags, const Codes& codes, std::int64_t recorded_tokens) {
  const auto available = static_cast<std::int64_t>(codes.positions());
  const bool by_rows = flags.rows.has_value();
  if (!by_rows && !flags.tokens && recorded_tokens == 0)
    throw Error(ExitCode::usage, "--from: expected --keep-rows N or --keep-tokens N beside it");
  const std::int64_t given = by_rows ? *flags.rows : flags.tokens.value_or(recorded_tokens);
  const std::int64_t most = by_rows ? codes.rows : available;
  if (given < 1 || given > most) {
    throw Error(ExitCode::usage, std::string(by_rows ? "--keep-rows" : "--keep-tokens") + ": got " +
                                     std::to_string(given) + ", expected 1.." + std::to_string(most) +
                                     ", as " + flags.from + " holds");
  }
  return by_rows ? given * codes.columns : given;
}

// Throws Error(usage) unless the file holds the image that the flags choose.
void require_index(const ContinueFlags& flags, std::size_t images) {
  if (flags.index < images) return;
  throw Error(ExitCode::usage, "--from-index: got " + std::to_string(flags.index) + ", expected 0.." +
                                   std::to_string(images - 1) + ", as " + flags.from + " holds");
}

// The grid of the codes, else the first one with rows of their length.
const Grid& grid_of(const Manifest& manifest, const std::string& from, const Codes& codes) {
  const Grid* found = nullptr;
  for (const Grid& grid : manifest.grids) {
    if (grid.columns != codes.columns) continue;
    if (grid.rows == codes.rows) return grid;
    if (found == nullptr) found = &grid;
  }
  if (found != nullptr) return *found;
  throw Error(ExitCode::input, from + ": got rows of " +
                                   counted(static_cast<std::size_t>(codes.columns), "code") +
                                   ", which no grid of bundle " + manifest.name + " has");
}

}  // namespace

void ContinueFlags::add(CLI::App& command, int& images) {
  begin_group(command, "Continue an image");
  CLI::Option* file =
      command
          .add_option("--from", from,
                      "Begin with the first tokens of an image: a PNG image, for bundles with an image "
                      "encoder, or a file written by --save-codes or encode; the rest is generated from the "
                      "caption")
          ->type_name("FILE");
  command.add_option("--from-index", index, "Number of the image in a file of several, from 0")
      ->type_name("N")
      ->needs(file)
      ->capture_default_str();
  CLI::Option* by_rows =
      command.add_option("--keep-rows", rows, "Rows of tokens to keep")->type_name("N")->needs(file);
  command.add_option("--keep-tokens", tokens, "Tokens to keep, row by row")
      ->type_name("N")
      ->needs(file)
      ->excludes(by_rows);
  fit.add_fit(command)->needs(file);
  command.add_option("--variations", images, "How often the rest is generated")
      ->type_name("N")
      ->needs(file)
      ->excludes(command.get_option("--batch-count"))
      ->default_str("1");
}

void Continued::apply(const Manifest& manifest, Request& request) const {
  if (from.empty()) return;
  if (request.width == 0 && request.height == 0) {
    const Grid& grid = grid_of(manifest, from, codes);
    request.width = grid.width;
    request.height = grid.height;
  }
  const Grid& grid = find_grid(manifest, request.width, request.height);
  if (grid.columns != codes.columns) {
    throw Error(ExitCode::usage, from + ": got rows of " +
                                     counted(static_cast<std::size_t>(codes.columns), "code") +
                                     ", expected " + std::to_string(grid.columns) + " for images of " +
                                     sides(grid.width, grid.height));
  }
  request.kept.assign(codes.ids.begin(), codes.ids.begin() + kept);
}

Continued read_continued(const ContinueFlags& flags, const std::string& params_from,
                         std::int64_t recorded_tokens) {
  if (flags.from.empty()) {
    if (recorded_tokens == 0) return {};
    throw Error(ExitCode::input, params_from + ": begins with " +
                                     counted(static_cast<std::size_t>(recorded_tokens), "token") +
                                     " of another image, and files are not read on behalf of an image; give "
                                     "--from CODES");
  }
  const std::string bytes = read_input(flags.from);
  if (!image_kind(bytes).empty()) {
    require_index(flags, 1);
    return {flags.from, {}, 0, parse_png(bytes, flags.from)};
  }
  if (flags.fit.how != FitFlags().how)
    throw Error(ExitCode::usage,
                "--fit: got it beside the codes of " + flags.from + ", expected an image as --from");
  std::vector<SavedCodes> images = parse_codes(bytes, flags.from);
  require_index(flags, images.size());
  Codes codes = std::move(images[flags.index].codes);
  const std::int64_t kept = count_kept(flags, codes, recorded_tokens);
  return {flags.from, std::move(codes), kept, std::nullopt};
}

void fit_continued(const ContinueFlags& flags, std::int64_t recorded_tokens, const Manifest& manifest,
                   const Request& request, Continued& continued) {
  FitFlags fit = flags.fit;
  if (request.width > 0) fit.width = request.width;
  if (request.height > 0) fit.height = request.height;
  continued.image = fit.apply(manifest, *continued.image, flags.from);
  const Grid& grid = find_grid(manifest, continued.image->width, continued.image->height);
  continued.codes = {grid.rows, grid.columns, {}};
  continued.kept = count_kept(flags, continued.codes, recorded_tokens);
}

}  // namespace lamplighter::cli
