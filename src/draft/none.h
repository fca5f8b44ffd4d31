#pragma once

#include <memory>

#include "draft/draft_method.h"

namespace lamplighter {

// Autoregressive decoding: a tree of the root alone.
std::unique_ptr<DraftMethod> make_none(const Method& method, const Models& models);

}  // namespace lamplighter
