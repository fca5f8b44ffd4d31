#include "pipeline/methods.h"

#include <algorithm>
#include <utility>

#include "decode/parts.h"
#include "draft/auto.h"
#include "draft/options/options.h"
#include "draft/registry.h"
#include "lamplighter/error.h"
#include "lamplighter/method.h"
#include "pipeline/resolved_request.h"

namespace lamplighter {
namespace {

void check_sampling(const Manifest& manifest, const ResolvedRequest& request) {
  const MethodOptions& method = request.method->options;
  if (!manifest.is_continuous() || !request.is_greedy() || method.rule.empty()) return;
  const std::string expected = "temperature: got 0, expected more than 0 for method " + method.method +
                               ", which compares probability densities";
  if (manifest.sampling.temperature > 0) throw Error(ExitCode::usage, expected);
  throw Error(ExitCode::bundle, manifest.directory + "/manifest.json: sampling." + expected +
                                    "; another one can be given with the request");
}

// Rows in parallel have no order of positions in which the first ones can be given.
void check_kept(const ResolvedRequest& request) {
  const std::string& method = request.method->options.method;
  if (request.kept.empty() || !find_method(method).is_row_parallel()) return;
  throw Error(ExitCode::usage, "kept: got " + std::to_string(count_given(request.kept)) +
                                   " tokens, expected none for method " + method +
                                   ", which decodes image rows in parallel");
}

}  // namespace

RunMethod::RunMethod(const MethodOptions& its_wanted, const MethodOptions& chosen, const Manifest& manifest,
                     const c10::Device& device, int batch)
    : wanted(its_wanted),
      options(resolve_method(chosen, manifest, device.is_cpu() ? "cpu" : "cuda", batch)),
      manifest_(manifest),
      device_(device) {}

const Method& RunMethod::ready(bool is_greedy) {
  std::optional<Method>& method = ready_[is_greedy ? 1 : 0];
  if (!method) method = make_method(options, manifest_, device_, is_greedy);
  return *method;
}

Methods::Methods(const Manifest& manifest, const Placement& placement, const RuntimeOptions& options,
                 std::size_t images, MeasureMethods measure)
    : manifest_(manifest),
      placement_(placement),
      batch_(options.batch_size),
      together_(images == 0 ? batch_ : batch_of(images, batch_)),
      note_(options.note),
      measure_(std::move(measure)) {}

void Methods::set(const MethodOptions& wanted, ResolvedRequest& request) {
  const auto known = std::find_if(methods_.begin(), methods_.end(),
                                  [&](const auto& method) { return is_same(method->wanted, wanted); });
  if (known != methods_.end()) {
    request.method = *known;
  } else {
    const MethodOptions chosen = choose_method(wanted, manifest_, placement_, together_, note_, measure_);
    request.method = methods_.emplace_back(
        std::make_shared<RunMethod>(wanted, chosen, manifest_, placement_.device, batch_));
    if (methods_.size() > kMost) methods_.pop_front();
  }
  check_sampling(manifest_, request);
  check_kept(request);
}

}  // namespace lamplighter
