#pragma once

#include <memory>

#include "draft/method.h"

namespace lamplighter {

// The window of SJD-PAC's official code (github.com/KangJialiang/SJD-PAC): all candidates of a position
// outlive the cycle, and the uniforms that verified a draft also decide whether it stays. Lossy; the rule
// official-pac selects it.
std::unique_ptr<DraftMethod> make_sjd_pac_official(const Method& method, const Models& models);

}  // namespace lamplighter
