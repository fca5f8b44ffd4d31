#include <memory>
#include <utility>

#include "base/files.h"
#include "base/format.h"
#include "base/stopwatch.h"
#include "lamplighter/error.h"
#include "lamplighter/image.h"
#include "lamplighter/pipeline.h"
#include "pipeline/output/codes_file.h"
#include "pipeline/pixel_encoder.h"
#include "tools/commands/commands.h"
#include "tools/fit_flags.h"
#include "tools/flags.h"
#include "tools/help.h"
#include "tools/signals.h"
#include "tools/terminal.h"

namespace lamplighter::cli {
namespace {

struct EncodeFlags {
  ModelFlags model;
  LogFlags logging;
  FitFlags fit;
  std::vector<std::string> images;
  std::string output = "codes.json";
  bool overwrite = false;
};

// Runs before weights are loaded: an image that cannot be read is found at once.
std::vector<Image> read_images(const EncodeFlags& flags, const Manifest& manifest) {
  std::vector<Image> fitted;
  for (const std::string& path : flags.images)
    fitted.push_back(flags.fit.apply(manifest, read_image(path), path));
  return fitted;
}

void encode(const EncodeFlags& flags) {
  Terminal terminal(flags.logging);
  const Manifest manifest = read_manifest(flags.model.folder());
  require_encoder(manifest);
  check_codes_name("--output", flags.output);
  check_output(flags.output, flags.overwrite);
  const std::vector<Image> images = read_images(flags, manifest);

  TextToImage engine(manifest.directory, flags.model.options());
  const OrderlyStop orderly;
  std::vector<SavedCodes> codes;
  for (std::size_t i = 0; i < images.size(); ++i) {
    if (stop_signal() != 0) {
      throw Error(ExitCode::interrupted, "stopped with " + std::to_string(i) + " of " +
                                             counted(images.size(), "image") + " encoded; " + flags.output +
                                             " is not written, the same command encodes all");
    }
    Stopwatch watch;
    codes.push_back({engine.encode(images[i]), {}});
    const Codes& made = codes.back().codes;
    terminal.detail(std::to_string(i + 1) + "/" + std::to_string(images.size()) + " " + flags.images[i] +
                    ": " + sides(made.rows, made.columns) + " tokens, " + format_fixed(watch.lap(), 1) +
                    " ms");
  }
  write_codes(flags.output, codes, flags.overwrite);
  terminal.result(flags.output);
}

void add_size(CLI::App& command, FitFlags& flags) {
  command.add_option("-W,--width", flags.width, "Width of the images, one of the bundle's sizes")
      ->type_name("N")
      ->default_str("the image's, or the bundle's first size");
  command.add_option("-H,--height", flags.height, "Height of the images, one of the bundle's sizes")
      ->type_name("N")
      ->default_str("the image's, or the bundle's first size");
  flags.add_fit(command);
}

}  // namespace

void add_encode(CLI::App& app) {
  auto flags = std::make_shared<EncodeFlags>();
  CLI::App* command = app.add_subcommand("encode", "Turn images into codes");
  common(*command,
         command->add_option("images", flags->images, "PNG, JPEG or WebP files; - = standard input"))
      ->required()
      ->type_name("IMAGE");
  flags->model.add_model(*command, false);
  common(*command, command->add_option("-o,--output", flags->output,
                                       "File that decode and generate --from read, one entry for each image; "
                                       "*.safetensors for other programs"))
      ->type_name("FILE")
      ->capture_default_str();
  add_size(*command, flags->fit);
  flags->model.add_runtime(*command);
  common(*command, command->add_flag("--overwrite", flags->overwrite, "Replace a file that exists"));
  flags->logging.add(*command);
  add_examples(*command, {{"what is left of an image when a bundle encodes and decodes it",
                           "lamplighter encode photo.png -m bundle -o photo.json\n"
                           "  lamplighter decode photo.json -m bundle -o again.png"}});
  command->callback([flags] { encode(*flags); });
}

}  // namespace lamplighter::cli
