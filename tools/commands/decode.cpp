#include <memory>

#include "base/format.h"
#include "base/stopwatch.h"
#include "lamplighter/error.h"
#include "lamplighter/image.h"
#include "lamplighter/outputs.h"
#include "lamplighter/pipeline.h"
#include "pipeline/metadata/metadata.h"
#include "pipeline/output/codes_check.h"
#include "pipeline/output/codes_file.h"
#include "tools/commands/commands.h"
#include "tools/flags.h"
#include "tools/help.h"
#include "tools/signals.h"
#include "tools/terminal.h"

namespace lamplighter::cli {
namespace {

struct DecodeFlags {
  ModelFlags model;
  LogFlags logging;
  std::string codes, output = "output.png";
  bool overwrite = false, no_metadata = false;
};

// The output of every image; {seed} is 0 for codes without parameters.
std::vector<OutputRequest> output_requests(const DecodeFlags& flags, const std::vector<SavedCodes>& images) {
  std::vector<OutputRequest> outputs;
  for (const SavedCodes& saved : images) {
    const std::string where = flags.codes + ": images[" + std::to_string(outputs.size()) + "].parameters";
    const bool known = !saved.parameters.is_null();
    outputs.push_back(
        {flags.output, outputs.size(), known ? parse_image(saved.parameters, where).request.seed : 0});
  }
  return outputs;
}

// Runs before weights are loaded.
void check_images(const DecodeFlags& flags, const Manifest& manifest, const std::vector<SavedCodes>& images) {
  for (std::size_t i = 0; i < images.size(); ++i) {
    const std::string where = flags.codes + ": images[" + std::to_string(i) + "]: codes";
    check_codes(manifest, images[i].codes, where, CodeRows::all);
  }
}

void decode(const DecodeFlags& flags) {
  Terminal terminal(flags.logging);
  const std::vector<SavedCodes> images = read_codes(flags.codes);
  const std::vector<OutputRequest> outputs = output_requests(flags, images);
  const Manifest manifest = read_manifest(flags.model.folder());
  if (!manifest.has("image_decoder")) {
    throw Error(ExitCode::bundle,
                "bundle " + manifest.directory + " cannot decode codes: it lacks image_decoder");
  }
  check_images(flags, manifest, images);
  const std::vector<std::string> paths = expand_outputs(outputs);
  prepare_outputs(outputs, paths, flags.overwrite);

  TextToImage engine(manifest.directory, flags.model.options());
  const OrderlyStop orderly;
  for (std::size_t i = 0; i < images.size(); ++i) {
    Stopwatch watch;
    const Image image = engine.decode(images[i].codes);
    const double image_ms = watch.lap();
    const bool text = !flags.no_metadata && !images[i].parameters.is_null();
    write_image(paths[i], image, text ? image_text(images[i].parameters) : ImageText(), flags.overwrite);
    terminal.detail(std::to_string(i + 1) + "/" + std::to_string(images.size()) + " " + paths[i] +
                    ": image " + format_fixed(image_ms, 1) + " ms, file " + format_fixed(watch.lap(), 1) +
                    " ms");
    terminal.result(paths[i]);
    if (stop_signal() != 0 && i + 1 < images.size()) {
      throw Error(ExitCode::interrupted, "stopped with " + std::to_string(i + 1) + " of " +
                                             counted(images.size(), "image") +
                                             " decoded; the same command with --overwrite decodes all again");
    }
  }
}

}  // namespace

void add_decode(CLI::App& app) {
  auto flags = std::make_shared<DecodeFlags>();
  CLI::App* command = app.add_subcommand("decode", "Turn saved codes into images");
  common(*command,
         command->add_option("codes", flags->codes, "File written by generate --save-codes or encode"))
      ->required()
      ->type_name("CODES");
  flags->model.add_model(*command, false);
  common(*command,
         command->add_option("-o,--output", flags->output,
                             "File (.png, .jpg, .webp), pattern with %04d, {index}, {seed}, or folder"))
      ->type_name("PATTERN")
      ->capture_default_str();
  flags->model.add_runtime(*command);
  common(*command, command->add_flag("--overwrite", flags->overwrite, "Replace files that exist"));
  command->add_flag("--no-metadata", flags->no_metadata, "Write no settings into the image files");
  flags->logging.add(*command);
  add_examples(*command, {{"save the codes of an image, and decode them later",
                           "lamplighter generate -p \"a tent at night\" --save-codes tent.json -o tent.png\n"
                           "  lamplighter decode tent.json -o again.png"}});
  command->callback([flags] { decode(*flags); });
}

}  // namespace lamplighter::cli
