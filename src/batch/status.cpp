#include "batch/status.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "base/files.h"
#include "base/format.h"
#include "base/stopwatch.h"
#include "batch/folder.h"
#include "lamplighter/error.h"
#include "lamplighter/pipeline.h"

namespace lamplighter {
namespace {

constexpr double kProbe = 600;          // milliseconds of generating for an estimate
constexpr double kBytesPerPixel = 1.3;  // estimate while no image is finished
constexpr std::size_t kRecently = 200;  // images for the present rate

std::string format_bytes(double bytes) {
  if (bytes >= 1e9) return format_fixed(bytes / 1e9, 1) + " GB";
  return format_fixed(bytes / 1e6, bytes < 1e7 ? 1 : 0) + " MB";
}

// Images per second of the newest images, by their file times.
double recent_rate(const std::string& folder, const std::vector<Record>& records) {
  std::vector<double> times;
  for (const Record& record : records) {
    struct stat status {};
    if (record.is_failed() || ::stat(join_path(folder, record.file).c_str(), &status) != 0) continue;
    times.push_back(static_cast<double>(status.st_mtim.tv_sec) +
                    1e-9 * static_cast<double>(status.st_mtim.tv_nsec));
  }
  std::sort(times.begin(), times.end());
  const std::size_t begin = times.size() > kRecently ? times.size() - kRecently : 0;
  if (times.size() < begin + 2 || times.back() <= times[begin]) return 0;
  return static_cast<double>(times.size() - 1 - begin) / (times.back() - times[begin]);
}

// Measurements of one second of generation.
struct Probe {
  double tokens_per_second = 0;
  double bytes = 0;  // of an image file
  std::int64_t tokens = 0;
};

Probe generate_for_a_second(const BatchOptions& options, const BatchPlan& plan) {
  TextToImage engine(options.bundle, options.runtime);
  std::vector<Request> requests;
  const auto several = std::min(plan.missing.size(), static_cast<std::size_t>(options.runtime.batch_size));
  for (std::size_t i = 0; i < several; ++i) requests.push_back(plan.plan.images[plan.missing[i]].request);
  Probe probe;
  Stopwatch watch;
  double spent = 0, begun = -1;
  std::int64_t first = 0;
  try {
    engine.generate(
        requests,
        [&](std::size_t, Result&& result) {
          probe.bytes = static_cast<double>(encode_png(result.image).size());
        },
        [&](const Progress& progress) {
          spent += watch.lap();
          if (begun < 0) {  // the first callback comes after loading
            begun = spent;
            first = progress.run_done;
            probe.tokens = progress.run_total / static_cast<std::int64_t>(several);
          } else {
            probe.tokens_per_second = 1000 * static_cast<double>(progress.run_done - first) / (spent - begun);
          }
          if (probe.bytes == 0) {
            probe.bytes = kBytesPerPixel * progress.grid->width * progress.grid->height;
          }
          return spent - begun < kProbe;
        },
        options.method);
  } catch (const Error& error) {
    if (error.code() != ExitCode::interrupted) throw;
  }
  return probe;
}

}  // namespace

std::string format_duration(double seconds) {
  if (seconds < 59.95) return format_fixed(seconds, 1) + " s";  // rounds to less than 60.0
  const auto whole = static_cast<long>(std::lround(seconds));
  std::array<char, 64> text{};
  if (whole < 3600) {
    std::snprintf(text.data(), text.size(), "%ld:%02ld min", whole / 60, whole % 60);
  } else {
    std::snprintf(text.data(), text.size(), "%ld:%02ld h", whole / 3600, whole % 3600 / 60);
  }
  return text.data();
}

std::string describe_status(const std::string& folder) {
  const std::vector<Record> records = read_records(folder);
  const std::size_t planned = planned_images(read_configurations(folder)).value_or(records.size());
  std::size_t there = 0, failed = 0;
  std::int64_t tokens = 0, passes = 0;
  for (const Record& record : records) {
    ++(record.is_failed() ? failed : there);
    tokens += record.tokens;
    passes += record.target_passes;
  }
  const double compression =
      static_cast<double>(tokens) / static_cast<double>(std::max<std::int64_t>(1, passes));
  std::string text = folder + ": " + std::to_string(there) + " of " + counted(planned, "image") +
                     (failed > 0 ? ", " + std::to_string(failed) + " failed" : "") +
                     (there > 0 ? ", " + format_fixed(compression, 2) + " tokens a pass" : "");
  if (!FileLock::is_taken(join_path(folder, ".tmp/lock")))
    return text + "\n" + (there < planned ? "not running" : "complete");
  const double rate = recent_rate(folder, records);
  text += "\nbeing generated";
  if (rate > 0) {
    text += ", " + format_fixed(rate, 2) + " images/s, " +
            format_duration(static_cast<double>(planned - std::min(planned, there + failed)) / rate) +
            " left";
  }
  return text;
}

std::string describe_estimate(const BatchOptions& options, const BatchPlan& plan) {
  const std::string missing = counted(plan.missing.size(), "image") + " to generate";
  if (plan.missing.empty()) return missing;
  const Probe probe = generate_for_a_second(options, plan);
  const auto count = static_cast<double>(plan.missing.size());
  if (probe.tokens_per_second <= 0) return missing;
  const double each = static_cast<double>(probe.tokens) / probe.tokens_per_second;
  return missing + ", about " + format_duration(each * count) + " and " + format_bytes(probe.bytes * count);
}

}  // namespace lamplighter
