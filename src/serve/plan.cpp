#include <algorithm>
#include <cmath>
#include <utility>

#include "base/format.h"
#include "base/message.h"
#include "base/suggestion.h"
#include "draft/options/options.h"
#include "draft/registry.h"
#include "lamplighter/pipeline.h"
#include "serve/fields.h"
#include "serve/parse.h"

namespace lamplighter {
namespace {

// A method that the bundle lacks a network for is the request's error, not the server's.
void check(const Manifest& manifest, const Request& request) {
  try {
    TextToImage::check(manifest, request);
  } catch (const Error& error) {
    if (error.code() != ExitCode::bundle) throw;
    throw HttpError(400, "not_supported", error.what());
  }
}

// How far a grid is from the sides that are given: first in shape, by steps of 5 %, then in size.
std::pair<double, double> distance(const Grid& grid, const Request& request) {
  const double wide = request.width > 0 ? std::log(grid.width / static_cast<double>(request.width)) : 0;
  const double high = request.height > 0 ? std::log(grid.height / static_cast<double>(request.height)) : 0;
  const bool has_shape = request.width > 0 && request.height > 0;
  return {has_shape ? std::round(std::abs(wide - high) * 20) : 0, std::abs(wide + high)};
}

// Gives the request the bundle's nearest size, and says so where it is another one.
void choose_size(const Manifest& manifest, std::int64_t most_pixels, Request& request,
                 std::vector<std::string>& warnings) {
  if (request.width == 0 && request.height == 0) return;
  const Grid* nearest = nullptr;
  for (const Grid& grid : manifest.grids) {
    if (std::int64_t{grid.width} * grid.height > most_pixels) continue;
    if (nearest == nullptr || distance(grid, request) < distance(*nearest, request)) nearest = &grid;
  }
  if (nearest == nullptr) return;
  const bool has_width = request.width == 0 || request.width == nearest->width;
  const bool has_height = request.height == 0 || request.height == nearest->height;
  const std::string given = request.width > 0 && request.height > 0
                                ? sides(request.width, request.height)
                                : (request.width > 0 ? "width " + std::to_string(request.width)
                                                     : "height " + std::to_string(request.height));
  if (!has_width || !has_height) {
    warnings.push_back("size: " + manifest.name + " has no " + given + ", the nearest it has is " +
                       sides(nearest->width, nearest->height));
  }
  request.width = nearest->width;
  request.height = nearest->height;
}

bool has_method(const Manifest& manifest, const std::string& name) {
  for (const MethodEntry& method : methods()) {
    if (method.name == name) return missing_for(method, manifest).empty();
  }
  return false;
}

}  // namespace

std::string list_of_unused(const std::vector<std::string>& unused) {
  constexpr std::size_t most = 64;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(most, unused.size()); ++i) names.push_back(excerpt_of(unused[i]));
  const std::string more =
      unused.size() > most ? " and " + std::to_string(unused.size() - most) + " others" : "";
  return list_of(names) + more;
}

void check_pixels(const Manifest& manifest, const Request& request, std::int64_t most) {
  const Grid& grid = find_grid(manifest, request.width, request.height);
  if (std::int64_t{grid.width} * grid.height <= most) return;
  throw Error(ExitCode::usage, "size: got " + sides(grid.width, grid.height) + ", expected at most " +
                                   std::to_string(most) + " pixels");
}

PlannedRequests plan_requests(const ImagesWanted& wanted, const Manifest& manifest,
                              const MethodOptions& method, const RequestRules& rules) {
  return with_http_errors([&] {
    PlannedRequests plan;
    std::vector<std::string> unused = wanted.unused;
    Request request = wanted.request;
    MethodOptions given = wanted.method;
    bool names_method = wanted.names_method;
    if (!names_method && has_method(manifest, wanted.sampler)) {
      given.method = wanted.sampler;
      names_method = true;
    } else if (!wanted.sampler.empty() && wanted.sampler != given.method) {
      unused.emplace_back("sampler_name");
    }
    if (wanted.is_lenient && given.steps && !manifest.is_continuous()) {
      given.steps.reset();
      unused.emplace_back("steps");
    }
    request.method = merge_methods(method, given, names_method);
    if (wanted.is_lenient && request.negative_prompt && manifest.prompt && !manifest.prompt->negative_text) {
      if (!request.negative_prompt->empty()) unused.emplace_back("negative_prompt");
      request.negative_prompt.reset();
    }
    if (!rules.strict) choose_size(manifest, rules.limits.pixels, request, plan.warnings);
    check(manifest, request);
    check_pixels(manifest, request, rules.limits.pixels);
    if (!unused.empty()) plan.warnings.push_back("not used: " + list_of_unused(unused));
    plan.unused = std::move(unused);
    plan.requests.assign(static_cast<std::size_t>(wanted.count), request);
    for (std::size_t i = 0; i < plan.requests.size(); ++i) plan.requests[i].seed += i;
    return plan;
  });
}

}  // namespace lamplighter
