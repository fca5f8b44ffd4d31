#include "bundle/manifest/guidance.h"

#include <algorithm>
#include <cstddef>

namespace lamplighter {
namespace {

// A scale stays as it is at the floor, and below it unless it is raised.
bool decays(const GuidanceSchedule& schedule, double scale) {
  return schedule.kind == "decay" && scale > schedule.floor;
}

double first_scale(const GuidanceSchedule& schedule, double scale) {
  return schedule.kind == "decay" && schedule.raise ? std::max(scale, schedule.floor) : scale;
}

void grow(const Grid& grid, double scale, std::vector<float>& scales) {
  const std::int64_t all = grid.tokens();
  for (std::int64_t k = 0; k < static_cast<std::int64_t>(scales.size()); ++k) {
    const std::int64_t generated =
        std::min(k + 1, all - 1);  // MAR counts one as left behind the last one, too
    scales[static_cast<std::size_t>(k)] =
        static_cast<float>(1.0 + (scale - 1.0) * static_cast<double>(generated) / static_cast<double>(all));
  }
}

// Replaces the scales from the first code on.
void decay(const GuidanceSchedule& schedule, const Grid& grid, double scale, std::vector<float>& scales) {
  const double divisor = schedule.share * static_cast<double>(grid.tokens());
  const auto columns = static_cast<std::size_t>(grid.columns);
  double behind = grid.before.empty() ? 0 : static_cast<double>(grid.before.size() - 1);  // n
  const auto step = [&] {
    scale = std::max(schedule.floor, scale * (1 - behind / divisor));
    ++behind;
  };
  for (std::size_t code = 0; code < scales.size(); ++code) {
    if (code > 0 && code % columns == 0) {
      for (std::size_t id = 0; id < grid.row_end.size(); ++id) step();
    }
    step();
    scales[code] = static_cast<float>(scale);
  }
}

}  // namespace

bool is_guided(const SamplingOptions& sampling) {
  return sampling.cfg_scale > 1;
}

bool guidance_varies(const GuidanceSchedule& schedule, const SamplingOptions& sampling) {
  return is_guided(sampling) &&
         (sampling.cfg_interval >= 0 || schedule.kind == "linear" || decays(schedule, sampling.cfg_scale));
}

std::vector<float> guidance_scales(const GuidanceSchedule& schedule, const Grid& grid,
                                   const SamplingOptions& sampling, std::int64_t count) {
  std::vector<float> scales(static_cast<std::size_t>(count), 1);
  if (!is_guided(sampling)) return scales;
  const double scale = sampling.cfg_scale;
  std::fill(scales.begin(), scales.end(), static_cast<float>(first_scale(schedule, scale)));
  if (schedule.kind == "linear") grow(grid, scale, scales);
  if (decays(schedule, scale)) decay(schedule, grid, scale, scales);
  // cfg_interval n guides the first token and the steps 0 .. n after it (LlamaGen's counting).
  const std::int64_t last = sampling.cfg_interval;
  if (last >= 0 && last <= grid.tokens() && last + 2 < count)
    std::fill(scales.begin() + static_cast<std::ptrdiff_t>(last + 2), scales.end(), 1.0F);
  return scales;
}

}  // namespace lamplighter
