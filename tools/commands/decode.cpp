#include <memory>

#include "base/format.h"
#include "base/stopwatch.h"
#include "commands.h"
#include "lamplighter/error.h"
#include "lamplighter/image.h"
#include "lamplighter/outputs.h"
#include "lamplighter/pipeline.h"
#include "pipeline/requests/codes_check.h"
#include "pipeline/requests/codes_file.h"
#include "pipeline/requests/metadata.h"
#include "tools/flags.h"
#include "tools/help.h"
#include "tools/signals.h"
#include "tools/terminal.h"

namespace lamplighter::cli {
namespace {

struct DecodeFlags {
  ModelFlags model;
  TalkFlags talk;
  std::string codes, output = "output.png";
  bool overwrite = false, no_metadata = false;
};

// Where every picture goes; {seed} is 0 for codes without parameters.
std::vector<OutputRequest> output_requests(const DecodeFlags& flags,
                                           const std::vector<SavedCodes>& pictures) {
  std::vector<OutputRequest> outputs;
  for (const SavedCodes& saved : pictures) {
    const std::string where = flags.codes + ": pictures[" + std::to_string(outputs.size()) + "].parameters";
    const bool known = !saved.parameters.is_null();
    outputs.push_back(
        {flags.output, outputs.size(), known ? parse_picture(saved.parameters, where).request.seed : 0});
  }
  return outputs;
}

// Before weights are read.
void check_pictures(const DecodeFlags& flags, const Manifest& manifest,
                    const std::vector<SavedCodes>& pictures) {
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    const std::string where = flags.codes + ": pictures[" + std::to_string(i) + "]: codes";
    check_codes(manifest, pictures[i].codes, where, CodeRows::all);
  }
}

void decode(const DecodeFlags& flags) {
  Terminal terminal(flags.talk);
  const std::vector<SavedCodes> pictures = read_codes(flags.codes);
  const std::vector<OutputRequest> outputs = output_requests(flags, pictures);
  const Manifest manifest = read_manifest(flags.model.folder());
  if (!manifest.has("image_decoder")) {
    throw Error(ExitCode::bundle,
                "bundle " + manifest.directory + " cannot decode codes: it lacks image_decoder");
  }
  check_pictures(flags, manifest, pictures);
  const std::vector<std::string> paths = expand_outputs(outputs);
  prepare_outputs(outputs, paths, flags.overwrite);

  TextToImage engine(manifest.directory, flags.model.options());
  const OrderlyStop orderly;
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    Stopwatch watch;
    const Image image = engine.decode(pictures[i].codes);
    const double image_ms = watch.lap();
    const bool text = !flags.no_metadata && !pictures[i].parameters.is_null();
    write_picture(paths[i], image, text ? picture_text(pictures[i].parameters) : PictureText(),
                  flags.overwrite);
    terminal.detail(std::to_string(i + 1) + "/" + std::to_string(pictures.size()) + " " + paths[i] +
                    ": image " + format_fixed(image_ms, 1) + " ms, file " + format_fixed(watch.lap(), 1) +
                    " ms");
    terminal.result(paths[i]);
    if (stop_signal() != 0) throw Error(ExitCode::interrupted, "stopped");
  }
}

}  // namespace

void add_decode(CLI::App& app) {
  auto flags = std::make_shared<DecodeFlags>();
  CLI::App* command = app.add_subcommand("decode", "Turn saved codes into pictures");
  command->add_option("codes", flags->codes, "File written by generate --save-codes")
      ->required()
      ->type_name("CODES");
  flags->model.add_model(*command, false);
  command
      ->add_option("-o,--output", flags->output,
                   "File (.png, .jpg, .webp), pattern with %04d, {index}, {seed}, or folder")
      ->type_name("PATTERN");
  flags->model.add_runtime(*command);
  command->add_flag("--overwrite", flags->overwrite, "Replace files that exist");
  command->add_flag("--no-metadata", flags->no_metadata, "Write no text into the files");
  flags->talk.add(*command);
  add_examples(*command, {{"tokens that generate kept, as pictures",
                           "lamplighter generate -p \"a tent at night\" --save-codes tent.json -o tent.png\n"
                           "  lamplighter decode tent.json -o again.png"}});
  command->callback([flags] { decode(*flags); });
}

}  // namespace lamplighter::cli
