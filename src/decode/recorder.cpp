#include "decode/recorder.h"

#include <algorithm>
#include <utility>

#include "decode/draft_record.h"
#include "decode/parts.h"
#include "draft/method.h"

namespace lamplighter {

std::vector<std::int32_t> RecordedImage::known() const {
  return {codes.begin(), std::find(codes.begin(), codes.end(), -1)};
}

void RecordedImage::keep(const std::vector<std::int32_t>& kept) {
  codes = kept;
  statistics.kept = count_given(kept);
  for (std::size_t position = 0; position < kept.size(); ++position) {
    if (kept[position] >= 0) statistics.order.push_back(static_cast<std::int64_t>(position));
  }
}

void RecordedImage::set(std::int64_t position, std::int64_t code) {
  const auto at = static_cast<std::size_t>(position);
  codes.resize(std::max(codes.size(), at + 1), -1);
  codes[at] = static_cast<std::int32_t>(code);
  statistics.order.push_back(position);
}

RecordedImage& Recorder::of(std::int64_t image) {
  const auto [record, added] = images_.try_emplace(image);
  if (!added) return record->second;
  record->second.statistics.prefills = 0;  // they are counted
  if (!method_.tree) return record->second;
  for (std::int64_t d = 0; d < method_.tree->max_depth(); ++d) {
    std::int64_t ranks = 0;
    for (const std::int64_t node : method_.tree->expanded_level(d))
      ranks = std::max(ranks, method_.tree->child_count(node));
    record->second.statistics.reached.emplace_back(static_cast<std::size_t>(ranks));
  }
  return record->second;
}

RecordedImage Recorder::take(std::int64_t image) {
  RecordedImage record = std::move(of(image));
  images_.erase(image);
  return record;
}

void Recorder::add(const Report& report) {
  for (const ImageReport& image : report.images) add(image, report.images.size(), report.times);
}

void Recorder::add(const ImageReport& image, std::size_t together, const StageTimes& times) {
  RecordedImage& recorded = of(image.image);
  Statistics& statistics = recorded.statistics;
  if (image.first) {
    recorded.set(*image.first, image.last_token);
    ++statistics.tokens;
    ++statistics.target_passes;
    ++statistics.prefills;
    statistics.prefill_ms += times.prefill;
  }
  recorded.bad_draft |= image.bad_draft;
  statistics.drafted.resize(image.drafted.size());
  statistics.accepted.resize(image.drafted.size());
  statistics.batch = std::max(statistics.batch, static_cast<int>(together));
  if (image.codes.empty()) return;  // complete before this cycle
  const auto committed = static_cast<std::int64_t>(image.codes.size());
  for (std::size_t i = 0; i < image.codes.size(); ++i) recorded.set(image.positions[i], image.codes[i]);
  statistics.cycles.push_back({statistics.kept + statistics.tokens, committed, image.accepted, times.draft,
                               times.score, times.verify, times.commit, times.cycle});
  if (!image.nodes.empty())
    statistics.cycles.back().drafted = drafted_tree(image, traits_of(method_.verify.rule).walk);
  statistics.tokens += committed;
  ++statistics.target_passes;
  statistics.draft_ms += times.draft;
  statistics.score_ms += times.score;
  statistics.verify_ms += times.verify;
  statistics.commit_ms += times.commit;
  statistics.cycle_ms += times.cycle;
  for (std::size_t d = 0; d < statistics.drafted.size(); ++d) {
    const bool reached = static_cast<std::int64_t>(d) < image.accepted;
    statistics.accepted[d] += reached ? 1 : 0;
    statistics.drafted[d] += image.drafted[d];
    if (reached && method_.tree) {
      const auto node = static_cast<std::size_t>(image.path[d + 1]);
      ++statistics.reached[d][static_cast<std::size_t>(method_.tree->rank[node])];
    }
  }
}

}  // namespace lamplighter
