#include "bench/report/report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace lamplighter {
namespace {

// All samples of a method at one batch size.
struct Group {
  std::string method;
  std::size_t batch_size = 1;
  std::vector<const BenchSample*> samples;
};

std::vector<Group> groups_of(const std::vector<BenchSample>& samples) {
  std::vector<Group> groups;
  for (const BenchSample& sample : samples) {
    auto group = std::find_if(groups.begin(), groups.end(), [&](const Group& one) {
      return one.method == sample.method && one.batch_size == sample.batch_size;
    });
    if (group == groups.end()) group = groups.insert(groups.end(), {sample.method, sample.batch_size, {}});
    group->samples.push_back(&sample);
  }
  return groups;
}

// Time of generating tokens, which is what methods change.
double generating_ms(const BenchSample& sample) {
  return sample.statistics.prefill_ms + sample.statistics.decode_ms;
}

// The slowest image stands for its batch and repeat: all of them started together.
using Batches = std::map<std::pair<std::size_t, int>, const BenchSample*>;
Batches batches_of(const Group& group) {
  Batches batches;
  for (const BenchSample* sample : group.samples) {
    const BenchSample*& longest = batches[{sample->batch, sample->repeat}];
    if (longest == nullptr || generating_ms(*sample) > generating_ms(*longest)) longest = sample;
  }
  return batches;
}

// Repeated values of batches or images. Units are the means over repeats; a single batch has its repeats as
// units.
using Repeats = std::map<std::size_t, std::vector<double>>;
std::vector<double> units_of(const Repeats& values) {
  if (values.size() == 1) return values.begin()->second;
  std::vector<double> units;
  for (const auto& [number, repeats] : values) units.push_back(mean_of(repeats));
  return units;
}

Interval latency_of(const Batches& batches) {
  Repeats times;
  for (const auto& [key, sample] : batches) times[key.first].push_back(generating_ms(*sample));
  return mean_interval(units_of(times));
}

Interval speedup_of(const Batches& baseline, const Batches& batches) {
  Repeats logarithms;
  for (const auto& [key, sample] : batches) {
    const auto other = baseline.find(key);
    if (other == baseline.end()) continue;
    logarithms[key.first].push_back(std::log(generating_ms(*other->second) / generating_ms(*sample)));
  }
  if (logarithms.empty()) return {};
  std::vector<double> ratios = units_of(logarithms);
  for (double& ratio : ratios) ratio = std::exp(ratio);
  return ratio_interval(ratios);
}

// Averages over images. Repeats give the same tokens, so they are no units.
template <class Get>
Interval over_images(const Group& group, Get get) {
  Repeats values;
  for (const BenchSample* sample : group.samples) values[sample->image].push_back(get(sample->statistics));
  for (auto& [image, repeats] : values) repeats = {mean_of(repeats)};
  return mean_interval(units_of(values));
}

double compression(const Statistics& statistics, bool count_prompt) {
  // An image without cycles has one token from one pass.
  if (count_prompt || statistics.cycles.empty()) return statistics.step_compression();
  return statistics.acceptance_length();
}

// Adds acceptance by depth and rank, and times per cycle.
void add_cycles(const Group& group, BenchReport& result) {
  double cycles = 0;
  for (const BenchSample* sample : group.samples) {
    const Statistics& s = sample->statistics;
    cycles += static_cast<double>(s.cycles.size());
    result.reached.resize(std::max(result.reached.size(), s.accepted.size()));
    for (std::size_t d = 0; d < s.accepted.size(); ++d)
      result.reached[d] += static_cast<double>(s.accepted[d]);
    result.ranks.resize(std::max(result.ranks.size(), s.reached.size()));
    for (std::size_t d = 0; d < s.reached.size(); ++d) {
      std::vector<double>& ranks = result.ranks[d];
      ranks.resize(std::max(ranks.size(), s.reached[d].size()));
      for (std::size_t r = 0; r < s.reached[d].size(); ++r) ranks[r] += static_cast<double>(s.reached[d][r]);
    }
    result.cycle_ms += s.cycle_ms;
    result.draft_ms += s.draft_ms;
    result.score_ms += s.score_ms;
    result.verify_ms += s.verify_ms;
    result.commit_ms += s.commit_ms;
  }
  cycles = std::max(cycles, 1.0);
  for (double& share : result.reached) share /= cycles;
  for (std::vector<double>& ranks : result.ranks) {
    for (double& share : ranks) share /= cycles;
  }
  for (double* ms :
       {&result.cycle_ms, &result.draft_ms, &result.score_ms, &result.verify_ms, &result.commit_ms})
    *ms /= cycles;
}

void add_resources(const Batches& batches, BenchReport& result) {
  std::vector<double> joules;
  for (const auto& [key, sample] : batches) {
    if (sample->peak_bytes) result.peak_bytes = std::max(result.peak_bytes.value_or(0), *sample->peak_bytes);
    if (sample->joules) joules.push_back(*sample->joules / sample->statistics.batch);
  }
  if (!joules.empty()) result.joules_per_image = mean_of(joules);
}

void add_times(const Batches& batches, BenchReport& result) {
  const auto over = [&](auto get) {
    std::vector<double> values;
    for (const auto& [key, sample] : batches) values.push_back(get(sample->statistics));
    return summarise(std::move(values));
  };
  // First tokens come from the prefill.
  const auto decoded = [](const Statistics& s) {
    return static_cast<double>(std::max<std::int64_t>(1, s.tokens - 1));
  };
  result.latency_ms = over([](const Statistics& s) { return s.prefill_ms + s.decode_ms; });
  result.images_per_second =
      over([](const Statistics& s) { return 1000.0 * s.batch / (s.prefill_ms + s.decode_ms); });
  result.token_ms = over([&](const Statistics& s) { return s.decode_ms / decoded(s); });
  result.tokens_per_second =
      over([&](const Statistics& s) { return 1000.0 * s.batch * decoded(s) / s.decode_ms; });
  result.text_ms = over([](const Statistics& s) { return s.text_ms; });
  result.prefill_ms = over([](const Statistics& s) { return s.prefill_ms; });
  result.decode_ms = over([](const Statistics& s) { return s.decode_ms; });
  result.image_ms = over([](const Statistics& s) { return s.image_ms; });
}

}  // namespace

std::vector<BenchReport> report(const std::vector<BenchSample>& samples, const ReportOptions& options) {
  const std::vector<Group> groups = groups_of(samples);
  std::map<std::size_t, Batches> baselines;
  for (const Group& group : groups) {
    if (group.method == kBaseline) baselines[group.batch_size] = batches_of(group);
  }
  std::vector<BenchReport> reports;
  for (const Group& group : groups) {
    const Batches batches = batches_of(group);
    BenchReport result;
    result.method = group.method;
    result.batch_size = group.batch_size;
    result.samples = batches.size();
    result.mean_latency_ms = latency_of(batches);
    add_times(batches, result);
    result.step_compression =
        over_images(group, [&](const Statistics& s) { return compression(s, options.count_prompt); });
    result.acceptance_length = over_images(group, [](const Statistics& s) { return s.acceptance_length(); });
    add_cycles(group, result);
    result.speedup = speedup_of(baselines[group.batch_size], batches);
    if (result.speedup.count > 0) result.share_kept = result.speedup.mean / result.step_compression.mean;
    add_resources(batches, result);
    reports.push_back(std::move(result));
  }
  return reports;
}

}  // namespace lamplighter
