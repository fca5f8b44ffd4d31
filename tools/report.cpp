#include "tools/report.h"

#include <algorithm>
#include <cstddef>

#include "base/format.h"
#include "pipeline/metadata/metadata.h"
#include "tools/terminal.h"

namespace lamplighter::cli {
namespace {

constexpr std::size_t kLabel = 10, kColumn = 7;

std::string ms(const char* stage, double value) {
  return std::string(stage) + " " + format_fixed(value, 1) + " ms";
}

// A line of a table: label, then right-aligned cells.
std::string row(std::string label, const std::vector<std::string>& cells) {
  label.resize(kLabel, ' ');
  for (const std::string& cell : cells)
    label += std::string(kColumn - std::min(kColumn, cell.size()), ' ') + cell;
  return "  " + label;
}

// Drafted and accepted nodes by depth; a depth counts as reached once per cycle.
std::vector<std::string> depth_table(const Statistics& s) {
  std::vector<std::string> depths, drafted, accepted, share;
  const double cycles = static_cast<double>(std::max<std::size_t>(1, s.cycles.size()));
  for (std::size_t d = 0; d < s.drafted.size(); ++d) {
    const std::int64_t reached = d < s.accepted.size() ? s.accepted[d] : 0;
    depths.push_back(std::to_string(d + 1));
    drafted.push_back(std::to_string(s.drafted[d]));
    accepted.push_back(std::to_string(reached));
    share.push_back(format_fixed(static_cast<double>(reached) / cycles, 2));
  }
  return {row("depth", depths), row("drafted", drafted), row("accepted", accepted), row("per cycle", share)};
}

}  // namespace

std::string summary(const Statistics& s) {
  const double seconds = s.total_ms() / 1000;
  const double rate = 1000.0 * static_cast<double>(s.tokens - 1) * s.batch / std::max(s.decode_ms, 1e-3);
  const bool drafted = !s.drafted.empty();
  return counted(s.tokens, "token") + ", " +
         (drafted ? counted(s.target_passes, "target pass") + " (" + format_fixed(s.step_compression(), 2) +
                        " tokens each), "
                  : "") +
         format_fixed(rate, rate < 10 ? 2 : 0) + " tokens/s, " + format_fixed(seconds, 2) + " s" +
         (s.batch > 1
              ? " for " + counted(s.batch, s.log_probabilities.empty() ? "image" : "candidate") + " together"
              : "");
}

std::vector<std::string> details(const Statistics& s) {
  std::vector<std::string> lines{"  " + ms("text", s.text_ms) + ", " + ms("prefill", s.prefill_ms) + ", " +
                                 ms("decode", s.decode_ms) + ", " + ms("image", s.image_ms)};
  if (s.drafted.empty()) return lines;
  const bool parts = s.draft_ms + s.score_ms > 0;  // a captured graph is timed as a whole
  if (parts) {
    lines.push_back("  decode: " + ms("draft", s.draft_ms) + ", " + ms("score", s.score_ms) + ", " +
                    ms("verify", s.verify_ms) + ", " + ms("commit", s.commit_ms));
  }
  lines.push_back("  " + counted(s.cycles.size(), "cycle") + ", acceptance length " +
                  format_fixed(s.acceptance_length(), 2));
  for (std::string& line : depth_table(s)) lines.push_back(std::move(line));
  if (s.proposals > 0)
    lines.push_back("  tries to sample after rejections: " + std::to_string(s.proposals) +
                    ", tokens that used up all of theirs: " + std::to_string(s.fallbacks));
  return lines;
}

Json report(const std::string& path, const Json& image, const Result& result) {
  const Statistics& s = result.statistics;
  Json line{{"output", path}};
  line.update(image);
  line["batch"] = s.batch;
  line["cycles"] = s.cycles.size();
  line["step_compression"] = s.step_compression();
  line["acceptance_length"] = s.acceptance_length();
  line["drafted_by_depth"] = s.drafted;
  line["accepted_by_depth"] = s.accepted;
  line["tokens_per_pass"] = tokens_per_pass_rows(result);
  if (s.proposals > 0) line["proposals"] = s.proposals, line["fallbacks"] = s.fallbacks;
  line["ms_of"] = s.batch > 1 ? "batch" : "image";  // the stage `image` is always timed per image
  line["ms"] = {{"text", s.text_ms},     {"prefill", s.prefill_ms}, {"decode", s.decode_ms},
                {"image", s.image_ms},   {"draft", s.draft_ms},     {"score", s.score_ms},
                {"verify", s.verify_ms}, {"commit", s.commit_ms}};
  return line;
}

}  // namespace lamplighter::cli
