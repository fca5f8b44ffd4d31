#pragma once

#include <memory>

#include "draft/draft_method.h"

namespace lamplighter {

// An MLP speculator (Wertheimer et al. 2024, section 3): a recurrent network with one layer a step reads the
// target's last hidden state and then the tokens that it samples. It has no attention and no cache; trees are
// static.
std::unique_ptr<DraftMethod> make_mlp(const Method& method, const Models& models);

}  // namespace lamplighter
