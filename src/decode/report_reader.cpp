#include "decode/report_reader.h"

#include <ATen/ops/empty_like.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <exception>
#include <numeric>
#include <utility>

#include "decode/draft_record.h"
#include "decode/state.h"
#include "kernels/commit/commit.h"
#include "kernels/verify/verify.h"

namespace lamplighter {
namespace {

// The positions of codes begin .. end - 1 of a slot.
std::vector<std::int64_t> positions(const at::Tensor& order, std::int64_t slot, std::int64_t begin,
                                    std::int64_t end) {
  if (order.defined()) {
    const std::int64_t row = order.size(0) == 1 ? 0 : slot;
    const std::int64_t* all = order.const_data_ptr<std::int64_t>() + row * order.size(1);
    return {all + begin, all + end};
  }
  std::vector<std::int64_t> raster(static_cast<std::size_t>(end - begin));
  std::iota(raster.begin(), raster.end(), begin);
  return raster;
}

Report parse(const at::Tensor& table, const at::Tensor& order, const at::Tensor& record,
             const StageTimes& times) {
  Report report;
  report.times = times;
  const std::int64_t depth = report::depth_of(table.size(1));
  for (std::int64_t slot = 0; slot < table.size(0); ++slot) {
    const std::int64_t* row = table.const_data_ptr<std::int64_t>() + slot * table.size(1);
    if (row[report::kImage] < 0) continue;
    const std::int64_t* codes = row + report::kCodes + 1;  // behind the last token
    const std::int64_t* path = row + report::path(depth);
    const std::int64_t* drafted = row + report::drafted(depth) + 1;  // behind the root's own column
    report.images.push_back({row[report::kImage],
                             row[report::kSteps],
                             row[report::kAccepted],
                             row[report::kCodes],
                             (row[report::kBad] & kVerifyBadDraft) != 0,
                             (row[report::kBad] & kVerifyBadTarget) != 0,
                             {codes, codes + row[report::kSteps] - row[report::kFirst]},
                             positions(order, slot, row[report::kFirst], row[report::kSteps]),
                             {path, path + depth + 1},
                             {drafted, drafted + depth},
                             record.defined() ? drafted_nodes(record[slot]) : std::vector<DraftedNode>()});
  }
  return report;
}

c10::Stream current_stream(const c10::Device& device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

at::Tensor pinned_like(const at::Tensor& values) {
  if (!values.defined()) return {};
  return at::empty_like(values, values.options().device(at::kCPU).pinned_memory(true));
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
    const bool is_part = laps_[i] != &StageTimes::prefill && laps_[i] != &StageTimes::record;
    if (is_part && laps_[i] != &StageTimes::cycle) times.cycle += ms;
  }
  return times;
}

ReportReader::ReportReader(const DecodeState& state) {
  if (state.run.counters.report.is_cpu()) return;
  for (Copy& copy : pinned_)
    copy = {pinned_like(state.run.counters.report), pinned_like(state.draft_method->order()), {}};
}

// Freeing pinned memory asks the device for an event, which throws once a kernel has failed.
ReportReader::~ReportReader() {
  if (std::uncaught_exceptions() == 0) return;
  for (Copy& copy : pinned_) {
    for (at::Tensor* values : {&copy.report, &copy.order, &copy.record})
      static_cast<void>(values->unsafeReleaseTensorImpl());
  }
}

std::optional<Report> ReportReader::read(const DecodeState& state, StageClock clock,
                                         const at::Tensor& record) {
  const at::Tensor order = state.draft_method->order();
  if (state.run.counters.report.is_cpu())
    return parse(state.run.counters.report, order, record, clock.read());
  Copy& copy = pinned_[turn_ = 1 - turn_];
  copy.report.copy_(state.run.counters.report, /*non_blocking=*/true);
  if (order.defined()) copy.order.copy_(order, /*non_blocking=*/true);
  if (record.defined()) {
    if (!copy.record.defined()) copy.record = pinned_like(record);
    copy.record.copy_(record, /*non_blocking=*/true);
  }
  clock.lap(&StageTimes::cycle);  // its event is behind the copies
  std::optional<Report> report;
  if (pending_) {
    const StageTimes times = pending_->clock.read();  // waits
    report = parse(pending_->copy.report, pending_->copy.order, pending_->copy.record, times);
  }
  pending_.emplace(Pending{copy, std::move(clock)});
  return report;
}

}  // namespace lamplighter
