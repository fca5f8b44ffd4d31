#include "tools/commands/batch_reporter.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "batch/status.h"

namespace lamplighter::cli {
namespace {

std::string compression(const BatchProgress& progress) {
  const double passes = static_cast<double>(std::max<std::int64_t>(1, progress.target_passes));
  return format_fixed(static_cast<double>(progress.tokens) / passes, 2) + " tokens a pass";
}

}  // namespace

BatchReporter::BatchReporter(std::string folder, bool json, Terminal& terminal)
    : folder_(std::move(folder)), json_(json), terminal_(terminal) {}

void BatchReporter::begin(const BatchPlan& plan, const Shard& shard) {
  const std::size_t present = plan.part - plan.missing.size();
  if (json_) {
    return event({{"event", "begin"},
                  {"images", plan.part},
                  {"present", present},
                  {"shard", shard.index},
                  {"shards", shard.count}});
  }
  terminal_.log(counted(plan.part, "image") + " of " + counted(plan.plan.captions, "caption") +
                (shard.count > 1 ? ", shard " + std::to_string(shard.index) + " of " +
                                       std::to_string(shard.count) + " by " + shard.source
                                 : "") +
                (present > 0 ? "; already there: " + std::to_string(present) : ""));
  if (plan.misunderstood == 0) return;
  terminal_.log("note: " + std::to_string(plan.misunderstood) + " of " +
                counted(plan.plan.captions, "caption") +
                " with no subject that the bundle can generate, or with words that it does not know; "
                "`lamplighter inspect` lists what it knows");
}

void BatchReporter::progress(const BatchProgress& progress) {
  if (json_) return;
  if (terminal_.has_bar()) {
    terminal_.progress(
        static_cast<double>(progress.present + progress.failed + progress.generated) + progress.in_work,
        static_cast<double>(progress.images), "images", compression(progress));
    return;
  }
  const auto now = std::chrono::steady_clock::now();
  if (now - reported_ < std::chrono::minutes(1)) return;
  reported_ = now;
  const double seconds = std::chrono::duration<double>(now - began_).count();
  const double rate = static_cast<double>(progress.generated) / seconds;
  const std::size_t stand = progress.present + progress.generated + progress.failed;
  const std::string left =
      rate > 0 ? ", " + format_duration(static_cast<double>(progress.images - stand) / rate) + " left" : "";
  terminal_.log(std::to_string(stand) + "/" + counted(progress.images, "image") + ", " +
                format_fixed(rate, 2) + " images/s, " + compression(progress) + left);
}

void BatchReporter::image(const Record& record, const BatchProgress& progress) {
  if (json_) {
    Json json{{"event", "image"}};
    json.update(to_json(record));
    event(json);
  } else if (record.is_failed()) {
    terminal_.log(folder_ + ": image " + std::to_string(record.index) + " (repeat " +
                  std::to_string(record.repeat) + ", seed " + std::to_string(record.seed) +
                  ") failed: " + record.error);
  } else {
    terminal_.detail(record.file + ": " + format_fixed(record.step_compression(), 2) + " tokens a pass, " +
                     format_fixed(record.decode_ms / 1000, 2) + " s");
  }
  this->progress(progress);
}

void BatchReporter::end(const BatchProgress& progress) {
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  if (json_) {
    return event({{"event", "end"},
                  {"images", progress.images},
                  {"present", progress.present},
                  {"generated", progress.generated},
                  {"failed", progress.failed},
                  {"seconds", seconds}});
  }
  terminal_.log(counted(progress.generated, "image") + " generated in " + format_duration(seconds) +
                (progress.generated > 0
                     ? ", " + format_fixed(static_cast<double>(progress.generated) / seconds, 2) +
                           " images/s, " + compression(progress)
                     : "") +
                (progress.failed > 0 ? ", " + std::to_string(progress.failed) + " failed" : ""));
  if (progress.cut > 0) {
    terminal_.log(
        "note: images whose captions are longer than the bundle reads: " + std::to_string(progress.cut) +
        "; \"cut\" in the manifest and in their metadata is the end that was not read");
  }
  terminal_.result(folder_);
}

}  // namespace lamplighter::cli
