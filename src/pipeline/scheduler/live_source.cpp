#include "pipeline/scheduler/live_source.h"

#include <string>
#include <utility>

#include "device/machine.h"
#include "lamplighter/error.h"

namespace lamplighter {

std::optional<ScheduledRequest> LiveSource::next(const Fits& fits, bool is_idle) {
  const RequestSource::Fits may_begin = [&](const Request& request) {
    try {
      return fits(resolve_(request, false));
    } catch (const Error&) {
      return true;  // it fails below
    }
  };
  while (std::optional<RequestSource::Entry> entry = requests_.next(may_begin, is_idle)) {
    try {
      return ScheduledRequest{entry->number, resolve_(entry->request, true)};
    } catch (...) {
      fail(entry->number, std::current_exception());
    }
  }
  return std::nullopt;
}

void LiveSource::progress(const ScheduledImages& images, const CodesOf& codes) {
  for (const auto& [number, image] : images) {
    if (!image.is_stepped) continue;
    const ScheduledRequest& scheduled = image.scheduled;
    const std::vector<std::int32_t> known = codes(number);
    if (image.begins_part) requests_.progress(scheduled.number, *scheduled.request.grid, known, 1);
    const std::int64_t by_cycle = image.committed - (image.begins_part ? 1 : 0);
    if (by_cycle > 0 || !image.begins_part)
      requests_.progress(scheduled.number, *scheduled.request.grid, known, by_cycle);
  }
}

void LiveSource::complete(std::uint64_t number, Result&& result) {
  requests_.complete(number, std::move(result));
}

void LiveSource::fail(std::uint64_t number, const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    requests_.fail(number, error);
  } catch (const std::exception& error) {
    const std::optional<Error> machine = machine_error(error);
    requests_.fail(number,
                   machine ? *machine : Error(ExitCode::device, std::string("internal: ") + error.what()));
  }
}

}  // namespace lamplighter
