#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <optional>

#include "bundle/placement.h"
#include "lamplighter/bundle.h"
#include "lamplighter/options.h"
#include "propose/method.h"

namespace lamplighter {

// The methods that the pictures of a run are drawn with, each worked out once. The manifest outlives them.
class Methods {
 public:
  Methods(const Manifest& manifest, const Placement& placement, int batch);

  // The number of a method, the same for the same words. Throws what resolve_method throws.
  std::size_t find(const MethodOptions& wanted);
  std::size_t size() const { return entries_.size(); }
  // Complete.
  const MethodOptions& options(std::size_t number) const { return entries_[number].resolved; }
  // Trees and tables, which are read with the first use. Throws what make_method throws.
  const Method& ready(std::size_t number, bool greedy);

 private:
  struct Entry {
    MethodOptions wanted, resolved;
    std::array<std::optional<Method>, 2> ready;  // drawn, greedy
  };

  const Manifest& manifest_;
  const Placement& placement_;
  int batch_;
  std::deque<Entry> entries_;  // references to them stay
};

}  // namespace lamplighter
