#pragma once

#include <memory>

#include "propose/method.h"

namespace lamplighter {

// ZipAR's open rows (zipar.h) with a window of speculative Jacobi decoding (jacobi.h) in each: a row goes on
// by as many codes a pass as the rule accepts of its drafts, and stays Method::rows.ahead codes behind the
// row above it. What a row may not take yet stays drafted, and the row below the last open one runs shortly
// before it opens, so that its window holds drafts when it does. Relaxed as ZipAR is: a code does not see
// what is lacking of the rows above; given what it sees, its law is the target's. From ahead = columns on
// nothing is lacking, and the law is that of ar. How many codes a pass gives each row is known only after it,
// so their places are state like the windows.
std::unique_ptr<Proposer> make_zipar_windows(const Method& method, const Models& models);

// The same with drafts that see those of the rows above them, too (after the row-parallel Jacobi decoding of
// arXiv 2606.05703): fewer are rejected for what was lacking, but what one has seen may be rejected later. A
// row may go on by what the row above accepts in the same pass, and open by it.
std::unique_ptr<Proposer> make_row_parallel(const Method& method, const Models& models);

}  // namespace lamplighter
