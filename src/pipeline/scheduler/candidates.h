#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "decode/prompts.h"
#include "decode/recorder.h"
#include "pipeline/resolved_request.h"

namespace lamplighter {

// The candidates of an image in work, which differ in their seeds. One is picked by the probability of what
// the image keeps (kept_log_probability). An image without a region has one.
class RegionCandidates {
 public:
  RegionCandidates(const ResolvedRequest& request, Condition condition);

  const Condition& condition() const { return condition_; }
  const DecodeRequest& request() const { return request_; }  // of the first
  bool are_compared() const { return count_ > 1; }
  // Candidates that have not begun.
  std::size_t waiting() const { return count_ - numbers_.size(); }
  // Begins the next one, which a run knows by this number.
  DecodeRequest begin(std::int64_t number);
  void progress(std::int64_t number, std::int64_t tokens) { tokens_[number] = tokens; }
  bool has_progress(std::int64_t number) const { return tokens_.count(number) != 0; }
  void complete(std::int64_t number, RecordedImage record, double log_probability);
  bool is_complete() const { return records_.size() == count_; }

  // Tokens so far: the mean over all.
  std::int64_t tokens() const;
  // Counts this many more tokens of all candidates. Returns them as tokens of one; what is left counts with
  // the next ones.
  std::int64_t commit(std::int64_t tokens);
  // The first one that is in work, or else complete; -1: none has begun.
  std::int64_t shown() const;
  // The codes of a complete one, null for others.
  const RecordedImage* record(std::int64_t number) const;
  // Takes out the one that is picked once all are complete; its statistics tell of the others.
  RecordedImage take();

 private:
  Condition condition_;
  DecodeRequest request_;
  std::size_t count_;
  std::string pick_;
  std::vector<std::int64_t> numbers_;              // of those that have begun
  std::map<std::int64_t, std::int64_t> tokens_;    // so far, by number
  std::int64_t uncounted_ = 0;                     // tokens that are less than one of every candidate
  std::map<std::int64_t, RecordedImage> records_;  // of complete ones
  std::map<std::int64_t, double> scores_;
};

// The seed of a candidate: the image's own for the first one.
std::uint64_t candidate_seed(std::uint64_t seed, std::size_t candidate);
// The index of a score: of the greatest one, or, for `sample`, sampled with probabilities in proportion to
// exp(score), by a random number of the seed.
std::size_t pick_candidate(const std::vector<double>& scores, const std::string& pick, std::uint64_t seed);

}  // namespace lamplighter
