#include "continue_from.h"

#include "base/files.h"
#include "base/format.h"
#include "lamplighter/error.h"
#include "tools/help.h"

namespace lamplighter::cli {

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

KeptPart ContinueFlags::part(std::int64_t recorded_tokens) const {
  KeptPart part{rows, tokens, "--keep-rows", "--keep-tokens"};
  if (!rows && !tokens && recorded_tokens > 0) part.tokens = recorded_tokens;
  return part;
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
  Continued continued = parse_continued(read_input(flags.from), flags.from, flags.index, "--from-index");
  if (continued.image) return continued;
  if (flags.fit.how) {
    throw Error(ExitCode::usage,
                "--fit: got it beside the codes of " + flags.from + ", expected an image as --from");
  }
  keep_part(flags.part(recorded_tokens), continued);
  return continued;
}

void fit_continued(const ContinueFlags& flags, std::int64_t recorded_tokens, const Manifest& manifest,
                   const Request& request, Continued& continued) {
  fit_to_request(manifest, request, flags.fit.fit(), continued);
  keep_part(flags.part(recorded_tokens), continued);
}

}  // namespace lamplighter::cli
