#include "pipeline/methods.h"

#include "lamplighter/method.h"
#include "propose/options/options.h"

namespace lamplighter {

Methods::Methods(const Manifest& manifest, const Placement& placement, int batch)
    : manifest_(manifest), placement_(placement), batch_(batch) {}

std::size_t Methods::find(const MethodOptions& wanted) {
  std::size_t number = 0;
  while (number < entries_.size() && !is_same(entries_[number].wanted, wanted)) ++number;
  if (number == entries_.size()) {
    const char* device = placement_.device.is_cpu() ? "cpu" : "cuda";
    entries_.push_back({wanted, resolve_method(wanted, manifest_, device, batch_), {}});
  }
  return number;
}

const Method& Methods::ready(std::size_t number, bool greedy) {
  Entry& entry = entries_[number];
  std::optional<Method>& method = entry.ready[greedy ? 1 : 0];
  if (!method) method = make_method(entry.resolved, manifest_, placement_.device, greedy);
  return *method;
}

}  // namespace lamplighter
