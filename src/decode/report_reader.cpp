#include "decode/report_reader.h"

#include <ATen/ops/empty_like.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <exception>
#include <numeric>
#include <utility>

#include "kernels/commit/commit.h"
#include "kernels/judge/judge.h"
#include "lamplighter/error.h"
#include "propose/seam.h"

namespace lamplighter {
namespace {

// The places of codes begin .. end - 1 of a run.
std::vector<std::int64_t> places(const std::vector<std::int64_t>& order, std::int64_t begin,
                                 std::int64_t end) {
  if (!order.empty()) return {order.begin() + begin, order.begin() + end};
  std::vector<std::int64_t> raster(static_cast<std::size_t>(end - begin));
  std::iota(raster.begin(), raster.end(), begin);
  return raster;
}

Report parse(const at::Tensor& table, const std::vector<std::int64_t>& order, const StageTimes& times) {
  Report report;
  report.times = times;
  const std::int64_t depth = report::depth_of(table.size(1));
  for (std::int64_t slot = 0; slot < table.size(0); ++slot) {
    const std::int64_t* row = table.const_data_ptr<std::int64_t>() + slot * table.size(1);
    if (row[report::kImage] < 0) continue;
    if ((row[report::kBad] & kJudgeBadTarget) != 0) {
      throw Error(
          ExitCode::bundle,
          "target: got logits that are NaN or infinite, expected finite numbers; the weights are damaged "
          "or the dtype is too narrow for them");
    }
    const std::int64_t* codes = row + report::kCodes + 1;  // behind the root
    const std::int64_t* path = row + report::path(depth);
    const std::int64_t* drafted = row + report::drafted(depth) + 1;  // behind the root's own column
    report.images.push_back({row[report::kImage],
                             row[report::kSteps],
                             row[report::kAccepted],
                             row[report::kCodes],
                             (row[report::kBad] & kJudgeBadDraft) != 0,
                             {codes, codes + row[report::kSteps] - row[report::kFirst]},
                             places(order, row[report::kFirst], row[report::kSteps]),
                             {path, path + depth + 1},
                             {drafted, drafted + depth}});
  }
  return report;
}

c10::Stream current_stream(const c10::Device& device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

}  // namespace

StageClock::StageClock(const c10::Device& device, bool stages) : device_(device), stages_(stages) {
  if (!device_.is_cpu()) mark();
}

void StageClock::mark() {
  events_.emplace_back(device_.type(), c10::EventFlag::BACKEND_DEFAULT);
  events_.back().record(current_stream(device_));
}

void StageClock::lap(double StageTimes::*stage) {
  if (!stages_ && stage != &StageTimes::prefill && stage != &StageTimes::cycle) return;
  laps_.push_back(stage);
  if (device_.is_cpu()) {
    ms_.push_back(watch_.lap());
  } else {
    mark();
  }
}

StageTimes StageClock::read() const {
  if (!events_.empty()) events_.back().synchronize();
  StageTimes times;
  for (std::size_t i = 0; i < laps_.size(); ++i) {
    const double ms = device_.is_cpu() ? ms_[i] : events_[i].elapsedTime(events_[i + 1]);
    times.*laps_[i] += ms;
    if (laps_[i] != &StageTimes::prefill && laps_[i] != &StageTimes::cycle) times.cycle += ms;
  }
  return times;
}

ReportReader::ReportReader(const RunState& run) : order_(run.order) {
  if (run.report.is_cpu()) return;
  for (at::Tensor& copy : pinned_)
    copy = at::empty_like(run.report, run.report.options().device(at::kCPU).pinned_memory(true));
}

// To free pinned memory asks the device for an event, which throws once a kernel has failed.
ReportReader::~ReportReader() {
  if (std::uncaught_exceptions() == 0) return;
  for (at::Tensor& copy : pinned_) static_cast<void>(copy.unsafeReleaseTensorImpl());
}

std::optional<Report> ReportReader::read(const RunState& run, StageClock clock) {
  if (run.report.is_cpu()) return parse(run.report, order_, clock.read());
  at::Tensor& copy = pinned_[turn_ = 1 - turn_];
  copy.copy_(run.report, /*non_blocking=*/true);
  clock.lap(&StageTimes::cycle);  // its event is behind the copy
  std::optional<Report> report;
  if (pending_) {
    const StageTimes times = pending_->clock.read();  // waits
    report = parse(pending_->report, order_, times);
  }
  pending_.emplace(Pending{copy, std::move(clock)});
  return report;
}

}  // namespace lamplighter
