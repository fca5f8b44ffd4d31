#include "tools/commands/continue_from.h"

#include "base/files.h"
#include "base/format.h"
#include "lamplighter/error.h"
#include "pipeline/region.h"
#include "tools/help.h"

namespace lamplighter::cli {

void ContinueFlags::add(CLI::App& command, JobFlags& jobs) {
  begin_group(command, "Continue or change an image");
  CLI::Option* file =
      command
          .add_option("--from", from,
                      "Keep tokens of an image: a PNG, JPEG or WebP file, for bundles with an image encoder, "
                      "or a file "
                      "written by --save-codes or encode; the rest is generated from the caption")
          ->type_name("FILE");
  command.add_option("--from-index", index, "Number of the image in a file of several, from 0")
      ->type_name("N")
      ->needs(file)
      ->capture_default_str();
  CLI::Option* by_rows =
      command.add_option("--keep-rows", rows, "Rows of tokens to keep")->type_name("N")->needs(file);
  CLI::Option* by_tokens = command.add_option("--keep-tokens", tokens, "Tokens to keep, row by row")
                               ->type_name("N")
                               ->needs(file)
                               ->excludes(by_rows);
  add_region(command, *file, {by_rows, by_tokens});
  fit.add_fit(command)->needs(file);
  command.add_option("--variations", jobs.batch_count, "How often the rest is generated")
      ->type_name("N")
      ->needs(file)
      ->excludes(command.get_option("--batch-count"))
      ->each([&jobs](const std::string& /*value*/) { jobs.count_flag = "--variations"; })
      ->default_str("1");
}

void ContinueFlags::add_region(CLI::App& command, CLI::Option& file,
                               const std::vector<CLI::Option*>& others) {
  CLI::Option* rectangle =
      command
          .add_option("--region", region,
                      std::string("Generate a rectangle anew, in pixels of the image, rounded outwards to "
                                  "whole tokens; ") +
                          kRegionSight)
          ->type_name("X,Y,W,H")
          ->needs(&file);
  for (CLI::Option* other : others) rectangle->excludes(other);
  CLI::Option* rest =
      command
          .add_option("--behind", behind,
                      "What lies right of the region and below it: keep, or redraw (it is generated, too)")
          ->type_name("HOW")
          ->default_str("keep");
  with_choices(command, rest, {"keep", "redraw"});
  command
      .add_option("--candidates", candidates,
                  "How often the region is generated; one is picked, by the probability of the kept tokens "
                  "that come after the first new one, guided, at temperature 1")
      ->type_name("K")
      ->default_str("1");
  CLI::Option* choice =
      command.add_option("--pick", pick, "Which candidate: best (the likeliest), or sample (by probability)")
          ->type_name("HOW")
          ->default_str("best");
  with_choices(command, choice, {"best", "sample"});
}

KeptPart ContinueFlags::part(const Recorded& recorded) const {
  KeptPart part{rows, tokens, "--keep-rows", "--keep-tokens", {}, "--region"};
  if (!region.empty()) part.region = parse_region(region, "--region");
  if (!rows && !tokens && region.empty()) {
    part.region = recorded.region;
    if (!part.region && recorded.kept_tokens > 0) part.tokens = recorded.kept_tokens;
  }
  if (part.region) {
    part.region->behind = behind.value_or(part.region->behind);
    part.region->candidates = candidates.value_or(part.region->candidates);
    part.region->pick = pick.value_or(part.region->pick);
  } else if (behind || candidates || pick) {
    throw Error(ExitCode::usage, std::string(behind       ? "--behind"
                                             : candidates ? "--candidates"
                                                          : "--pick") +
                                     ": got it without a region, expected --region X,Y,W,H beside it");
  }
  return part;
}

Continued read_continued(const ContinueFlags& flags, const std::string& params_from,
                         const Recorded& recorded) {
  const KeptPart part = flags.part(recorded);
  if (flags.from.empty()) {
    if (recorded.kept_tokens == 0) return {};
    throw Error(ExitCode::input, params_from + ": keeps " +
                                     counted(static_cast<std::size_t>(recorded.kept_tokens), "token") +
                                     " of another image, and files are not read on behalf of an image; give "
                                     "--from CODES");
  }
  Continued continued = parse_continued(read_input(flags.from), flags.from, flags.index, "--from-index");
  if (continued.image) return continued;
  if (flags.fit.how) {
    throw Error(ExitCode::usage,
                "--fit: got it beside the codes of " + flags.from + ", expected an image as --from");
  }
  keep_part(part, continued);
  return continued;
}

void fit_continued(const ContinueFlags& flags, const Recorded& recorded, const Manifest& manifest,
                   const Request& request, Continued& continued) {
  fit_to_request(manifest, request, flags.fit.fit(), continued);
  keep_part(flags.part(recorded), continued);
}

std::string note_region(const Continued& continued, const Region& whole) {
  const std::string note = note_whole_tokens("--region", *continued.region, whole);
  return note.empty() ? "" : "note: " + note;
}

}  // namespace lamplighter::cli
