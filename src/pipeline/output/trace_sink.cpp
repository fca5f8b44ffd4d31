#include <cstddef>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/json.h"
#include "lamplighter/sinks.h"
#include "pipeline/metadata/metadata.h"

namespace lamplighter {
namespace {

// Positions of the tokens that a cycle committed, in its order.
std::vector<std::int64_t> positions_of(const Cycle& cycle, const Statistics& statistics) {
  const auto begin = statistics.order.begin() + static_cast<std::ptrdiff_t>(cycle.first);
  return {begin, begin + static_cast<std::ptrdiff_t>(cycle.committed)};
}

// The codes at these positions; the smaller image in front of an image has the first ones.
std::vector<std::int32_t> codes_at(const std::vector<std::int64_t>& positions, const Codes& codes) {
  std::vector<std::int32_t> all = codes.preview;
  all.insert(all.end(), codes.ids.begin(), codes.ids.end());
  std::vector<std::int32_t> found;
  for (const std::int64_t position : positions) found.push_back(all[static_cast<std::size_t>(position)]);
  return found;
}

// What a cycle drafted, and what became of it.
void describe_draft(const DraftedTree& drafted, Json& line) {
  line["tree"] = {{"parents", drafted.parents}, {"tokens", drafted.tokens}};
  line["accepted_node"] = drafted.accepted_node;
  line["refused"] = Json::array();
  for (const RefusedNode& refused : drafted.refused)
    line["refused"].push_back({{"node", refused.node},
                               {"token", drafted.tokens[static_cast<std::size_t>(refused.node)]},
                               {"target", shortest(refused.target)},
                               {"draft", shortest(refused.draft)}});
}

Json describe_cycle(const Cycle& cycle, const Result& result) {
  const std::vector<std::int64_t> positions = positions_of(cycle, result.statistics);
  Json line{{"first", cycle.first},
            {"committed", cycle.committed},
            {"accepted", cycle.accepted},
            {"positions", positions}};
  if (!result.codes.ids.empty()) line["codes"] = codes_at(positions, result.codes);
  if (cycle.drafted) describe_draft(*cycle.drafted, line);
  line["ms"] = {{"cycle", cycle.cycle_ms},
                {"draft", cycle.draft_ms},
                {"score", cycle.score_ms},
                {"verify", cycle.verify_ms},
                {"commit", cycle.commit_ms}};
  return line;
}

std::string trace_lines(std::size_t image, const Json& description, const Result& result) {
  std::string lines =
      to_text(
          {{"image", image}, {"settings", description}, {"tokens_per_pass", tokens_per_pass_rows(result)}}) +
      "\n";
  std::size_t number = 0;
  for (const Cycle& cycle : result.statistics.cycles) {
    Json line{{"image", image}, {"cycle", number++}};
    line.update(describe_cycle(cycle, result));
    lines += line.dump() + "\n";
  }
  return lines;
}

class TraceSink : public Sink {
 public:
  TraceSink(Origin origin, std::string path, bool overwrite)
      : origin_(std::move(origin)), path_(std::move(path)), overwrite_(overwrite) {}

  void image(std::size_t index, const Request& request, const Result& result) override {
    lines_ += trace_lines(index, describe_image(origin_, request, result), result);
  }

  void done() override { write_file(path_, lines_, overwrite_); }
  void stopped() override {
    if (!lines_.empty()) done();
  }

 private:
  Origin origin_;
  std::string path_, lines_;
  bool overwrite_;
};

}  // namespace

std::unique_ptr<Sink> trace_sink(Origin origin, std::string path, bool overwrite) {
  return std::make_unique<TraceSink>(std::move(origin), std::move(path), overwrite);
}

}  // namespace lamplighter
