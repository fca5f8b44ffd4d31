#pragma once

#include <memory>

#include "propose/method.h"

namespace lamplighter {

// ZipAR's open rows (zipar.h) with a window of speculative Jacobi decoding (jacobi.h) in each: a row goes on
// by as many codes a pass as the rule accepts of its drafts, and stays Method::rows.ahead codes behind the
// row above it. Relaxed as ZipAR is: a code does not see what is lacking of the rows above; given what it
// sees, its law is the target's. From ahead = columns on nothing is lacking, and the law is that of ar. How
// many codes a pass gives each row is known only after it, so their places are state like the windows.
std::unique_ptr<Proposer> make_zipar_windows(const Method& method, const Models& models);

// The same with drafts that see those of the rows above them, too (after the row-parallel Jacobi decoding of
// arXiv 2606.05703): fewer are rejected for what was lacking, but what one has seen may be rejected later.
std::unique_ptr<Proposer> make_row_parallel(const Method& method, const Models& models);

// The chains of a draft of windows, each an image of its own with its row of `target` fp32 [I, N, V],
// probabilities. The k-th of `kinds` uniforms of a node is its own whatever other rows and nodes there are.
ops::ScoredTree chains_of(const RunState& run, const Draft& draft, const at::Tensor& target,
                          ops::Purpose purpose, std::int64_t kinds);

// int64 [I, M]: the values that are kept in front, in their order, then -1.
at::Tensor packed(const at::Tensor& values, const at::Tensor& kept);

}  // namespace lamplighter
