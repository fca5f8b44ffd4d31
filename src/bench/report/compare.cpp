#include "bench/report/compare.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "bench/report/json.h"
#include "draft/registry.h"
#include "lamplighter/error.h"

namespace lamplighter {
namespace {

constexpr const char* kFormat = "lamplighter-bench";
constexpr int kFormatVersion = 1;

// Repeated values by seed: of an image, or of a batch's first image.
using Values = std::map<std::uint64_t, std::vector<double>>;

// Measurements of a method at one batch size. The slowest image stands for its batch.
struct Row {
  std::string method;
  std::size_t batch_size = 1;
  Values step_compression, generating_ms, token_ms;
};

struct Run {
  std::vector<Row> rows;
  std::map<std::string, Json> facts;
};

// One batch in one repeat.
struct Batch {
  std::uint64_t seed = 0;  // of its first image
  double generating_ms = 0, token_ms = 0;
};
// Method, batch size, batch, repeat.
using BatchKey = std::tuple<std::string, std::int64_t, std::int64_t, std::int64_t>;

class RunReader {
 public:
  RunReader(const Json& json, const std::string& name) : reader_(json, name, ExitCode::input) {}

  Run read(const Json& json) {
    if (reader_.has("synthetic"))
      reader_.fail("was written by bench --synthetic, expected results of bench on a bundle");
    if (!reader_.has("format") || reader_.text("format") != kFormat)
      reader_.fail(std::string("is not a file of bench --export-json: it lacks the format ") + kFormat);
    reader_.integer("format_version", kFormatVersion, kFormatVersion);
    count_prompt_ = reader_.boolean("count_prompt");
    for (JsonReader& sample : reader_.objects("samples")) add(sample);
    if (run_.rows.empty()) reader_.fail("has no samples");
    for (const auto& [key, batch] : batches_) {
      Row& row = row_of(std::get<0>(key), static_cast<std::size_t>(std::get<1>(key)));
      row.generating_ms[batch.seed].push_back(batch.generating_ms);
      row.token_ms[batch.seed].push_back(batch.token_ms);
    }
    add_facts(json, "");
    return std::move(run_);
  }

 private:
  static double positive(JsonReader& sample, const char* key) {
    const double value = sample.number(key);
    if (value <= 0) sample.reject(key, "more than 0");
    return value;
  }

  Row& row_of(const std::string& method, std::size_t batch_size) {
    for (Row& row : run_.rows) {
      if (row.method == method && row.batch_size == batch_size) return row;
    }
    return run_.rows.emplace_back(Row{method, batch_size, {}, {}, {}});
  }

  void add(JsonReader& sample) {
    const std::string method = sample.text("method");
    const std::int64_t size = sample.integer("batch_size", 1), number = sample.integer("batch", 0),
                       repeat = sample.integer("repeat", 0), tokens = sample.integer("tokens", 1),
                       passes = sample.integer("target_passes", 1);
    const std::uint64_t seed = sample.unsigned_integer("seed");
    // Excludes the prompt's pass, which gives the first token.
    const std::int64_t less = count_prompt_ || passes == 1 ? 0 : 1;
    Row& row = row_of(method, static_cast<std::size_t>(size));
    row.step_compression[seed].push_back(static_cast<double>(tokens - less) /
                                         static_cast<double>(passes - less));
    const double decode = positive(sample, "decode_ms"), generating = decode + positive(sample, "prefill_ms");
    const auto [found, first] = batches_.try_emplace({method, size, number, repeat}, Batch{seed, 0, 0});
    Batch& batch = found->second;
    batch.seed = std::min(batch.seed, seed);
    if (generating <= batch.generating_ms) return;
    batch.generating_ms = generating;
    batch.token_ms = decode / static_cast<double>(std::max<std::int64_t>(1, tokens - 1));
  }

  // Collects settings and facts of the machine, but no measurements.
  void add_facts(const Json& json, const std::string& before) {
    static const std::set<std::string> kMeasured{"methods", "samples",     "peak_bytes", "mhz",
                                                 "gpu_mhz", "load_before", "others",     "busy"};
    for (const auto& [key, value] : json.items()) {
      if (before.empty() && kMeasured.count(key) != 0) continue;
      if (value.is_object()) {
        add_facts(value, before + key + ".");
      } else if (kMeasured.count(key) == 0) {
        run_.facts[before + key] = value;
      }
    }
  }

  JsonReader reader_;
  bool count_prompt_ = true;
  Run run_;
  std::map<BatchKey, Batch> batches_;
};

// Means over repeats; for a single value, its repeats.
std::vector<double> units_of(const Values& values) {
  if (values.size() == 1) return values.begin()->second;
  std::vector<double> units;
  for (const auto& [seed, repeats] : values) units.push_back(mean_of(repeats));
  return units;
}

bool are_same(const Values& before, const Values& after) {
  return before.size() > 1 && before.size() == after.size() &&
         std::equal(before.begin(), before.end(), after.begin(),
                    [](const auto& left, const auto& right) { return left.first == right.first; });
}

// Ratio of independent values: squared half-widths add up on the logarithmic scale.
Interval unpaired_ratio(const Interval& before, const Interval& after) {
  const double mean = after.mean / before.mean;
  const double half = std::hypot(std::log(before.high / before.mean), std::log(after.high / after.mean));
  return {mean, mean * std::exp(-half), mean * std::exp(half), std::min(before.count, after.count)};
}

Change change_of(const Values& before, const Values& after) {
  Change change;
  change.before = ratio_interval(units_of(before));
  change.after = ratio_interval(units_of(after));
  change.paired = are_same(before, after);
  if (change.before.count == 0 || change.after.count == 0) return change;
  if (!change.paired) {
    change.ratio = unpaired_ratio(change.before, change.after);
    return change;
  }
  std::vector<double> ratios;
  for (const auto& [seed, repeats] : before) ratios.push_back(mean_of(after.at(seed)) / mean_of(repeats));
  change.ratio = ratio_interval(ratios);
  return change;
}

// Counts are equal in all repeats, so one value is enough.
Values once(const Values& values) {
  Values means;
  for (const auto& [seed, repeats] : values) means[seed] = {mean_of(repeats)};
  return means;
}

const Row* find_row(const Run& run, const std::string& method, std::size_t batch_size) {
  const auto found = std::find_if(run.rows.begin(), run.rows.end(), [&](const Row& row) {
    return row.method == method && row.batch_size == batch_size;
  });
  return found == run.rows.end() ? nullptr : &*found;
}

// Time of ar divided by the row's time, batch by batch.
Values speedup_of(const Run& run, const Row& row) {
  Values ratios;
  const Row* baseline = find_row(run, kBaseline, row.batch_size);
  if (baseline == nullptr) return ratios;
  for (const auto& [seed, times] : row.generating_ms) {
    const auto other = baseline->generating_ms.find(seed);
    if (other == baseline->generating_ms.end()) continue;
    for (std::size_t i = 0; i < std::min(times.size(), other->second.size()); ++i)
      ratios[seed].push_back(other->second[i] / times[i]);
  }
  return ratios;
}

std::vector<std::string> rows_only_in(const Run& run, const Run& other) {
  std::vector<std::string> names;
  for (const Row& row : run.rows) {
    if (find_row(other, row.method, row.batch_size) == nullptr)
      names.push_back(row_name(row.method, row.batch_size));
  }
  return names;
}

std::vector<Difference> differences_of(const Run& before, const Run& after) {
  std::map<std::string, std::pair<Json, Json>> facts;
  for (const auto& [key, value] : before.facts) facts[key].first = value;
  for (const auto& [key, value] : after.facts) facts[key].second = value;
  std::vector<Difference> differences;
  for (const auto& [key, values] : facts) {
    if (values.first != values.second) differences.push_back({key, values.first, values.second});
  }
  return differences;
}

Json to_json(const Change& change) {
  if (change.before.count == 0 || change.after.count == 0) return nullptr;
  return {{"before", to_json(change.before)},
          {"after", to_json(change.after)},
          {"ratio", to_json(change.ratio)},
          {"paired", change.paired},
          {"beyond_noise", change.is_beyond_noise()}};
}

}  // namespace

bool Change::is_beyond_noise() const {
  return ratio.count > 1 && (ratio.low > 1 || ratio.high < 1);
}

std::string row_name(const std::string& method, std::size_t batch_size) {
  return batch_size == 1 ? method : method + ", " + std::to_string(batch_size) + " together";
}

Comparison compare_runs(const Json& before, const std::string& before_name, const Json& after,
                        const std::string& after_name) {
  const Run first = RunReader(before, before_name).read(before);
  const Run second = RunReader(after, after_name).read(after);
  Comparison comparison;
  for (const Row& row : first.rows) {
    const Row* other = find_row(second, row.method, row.batch_size);
    if (other == nullptr) continue;
    comparison.methods.push_back({row.method, row.batch_size,
                                  change_of(once(row.step_compression), once(other->step_compression)),
                                  change_of(speedup_of(first, row), speedup_of(second, *other)),
                                  change_of(row.token_ms, other->token_ms)});
  }
  comparison.only_before = rows_only_in(first, second);
  comparison.only_after = rows_only_in(second, first);
  comparison.differences = differences_of(first, second);
  return comparison;
}

Json to_json(const Comparison& comparison) {
  Json methods = Json::array(), differences = Json::array();
  for (const MethodChange& one : comparison.methods) {
    methods.push_back({{"method", one.method},
                       {"batch_size", one.batch_size},
                       {"step_compression", to_json(one.step_compression)},
                       {"speedup", to_json(one.speedup)},
                       {"token_ms", to_json(one.token_ms)}});
  }
  for (const Difference& one : comparison.differences)
    differences.push_back({{"key", one.key}, {"before", one.before}, {"after", one.after}});
  return {{"methods", std::move(methods)},
          {"only_before", comparison.only_before},
          {"only_after", comparison.only_after},
          {"differences", std::move(differences)}};
}

}  // namespace lamplighter
