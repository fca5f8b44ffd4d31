#pragma once

#include <memory>

#include "propose/proposer.h"

namespace lamplighter {

// An MLP speculator (Wertheimer et al. 2024, section 3): a recurrent network of one layer a step reads the
// target's last hidden state and, one after the other, the tokens that it draws. No attention, no cache;
// trees are static.
std::unique_ptr<Proposer> make_mlp(const Method& method, const Models& models);

}  // namespace lamplighter
