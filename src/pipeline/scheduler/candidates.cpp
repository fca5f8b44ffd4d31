#include "pipeline/scheduler/candidates.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/philox.h"

namespace lamplighter {
namespace {

// Purposes of random numbers beside ops::Purpose.
constexpr std::uint32_t kSeeds = 32, kPick = 33;

}  // namespace

std::uint64_t candidate_seed(std::uint64_t seed, std::size_t candidate) {
  if (candidate == 0) return seed;
  const PhiloxBlock block =
      philox4x32({{static_cast<std::uint32_t>(candidate), kSeeds, 0, 0}}, static_cast<std::uint32_t>(seed),
                 static_cast<std::uint32_t>(seed >> 32));
  return (std::uint64_t{block.word[1]} << 32) | block.word[0];
}

std::size_t pick_candidate(const std::vector<double>& scores, const std::string& pick, std::uint64_t seed) {
  const auto best = std::max_element(scores.begin(), scores.end());
  const auto first = static_cast<std::size_t>(best - scores.begin());
  if (pick != "sample" || !std::isfinite(*best)) return first;
  double sum = 0;
  for (const double score : scores) sum += std::exp(score - *best);
  double left = philox_uniform(seed, 0, kPick, 0) * sum;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    left -= std::exp(scores[i] - *best);
    if (left < 0) return i;
  }
  return first;
}

RegionCandidates::RegionCandidates(const ResolvedRequest& request, Condition condition)
    : condition_(std::move(condition)),
      request_{request.sampling, request.seed, request.kept},
      count_(static_cast<std::size_t>(request.candidates)),
      pick_(request.pick) {}

DecodeRequest RegionCandidates::begin(std::int64_t number) {
  DecodeRequest own = request_;
  own.seed = candidate_seed(request_.seed, numbers_.size());
  numbers_.push_back(number);
  return own;
}

void RegionCandidates::complete(std::int64_t number, RecordedImage record, double log_probability) {
  records_.insert_or_assign(number, std::move(record));
  scores_[number] = log_probability;
}

std::int64_t RegionCandidates::tokens() const {
  std::int64_t sum = 0;
  for (const auto& [number, tokens] : tokens_) sum += tokens;
  return sum / static_cast<std::int64_t>(count_);
}

std::int64_t RegionCandidates::commit(std::int64_t tokens) {
  const auto count = static_cast<std::int64_t>(count_);
  uncounted_ += tokens;
  return std::exchange(uncounted_, uncounted_ % count) / count;
}

std::int64_t RegionCandidates::shown() const {
  for (const std::int64_t number : numbers_) {
    if (records_.count(number) == 0) return number;
  }
  return numbers_.empty() ? -1 : numbers_.front();
}

const RecordedImage* RegionCandidates::record(std::int64_t number) const {
  const auto found = records_.find(number);
  return found == records_.end() ? nullptr : &found->second;
}

RecordedImage RegionCandidates::take() {
  if (!are_compared()) return std::move(records_.begin()->second);
  std::vector<double> scores;
  std::int64_t passes = 0;
  for (const std::int64_t number : numbers_) {
    scores.push_back(scores_.at(number));
    passes += records_.at(number).statistics.target_passes + 1;  // one pass scores it
  }
  const std::size_t picked = pick_candidate(scores, pick_, request_.seed);
  RecordedImage record = std::move(records_.at(numbers_[picked]));
  record.statistics.log_probabilities = std::move(scores);
  record.statistics.picked = static_cast<std::int64_t>(picked);
  record.statistics.passes_of_all = passes;
  return record;
}

}  // namespace lamplighter
