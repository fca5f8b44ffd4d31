#pragma once

#include <memory>

#include "draft/method.h"

namespace lamplighter {

// Row-parallel decoding (zipar.h) with a window of speculative Jacobi decoding (windows/jacobi.h) in each
// image row: a row advances by as many codes a pass as the rule accepts of its drafts, and stays
// the option `ahead` codes behind the row above it. Accepted drafts that a row may not commit yet
// stay drafts. The row below the last open one runs shortly before it opens, so that its window holds drafts
// when it does. Lossy as ZipAR is: a code does not see the unfinished parts of the rows above; given what it
// sees, it follows the target's distribution. From ahead = columns on it sees everything, and decoding is
// lossless. How many codes a pass gives each row is known only after it, so positions are state like the
// windows.
std::unique_ptr<DraftMethod> make_zipar_sjd(const Method& method, const Models& models);

// The same with drafts that also see the drafts of the rows above (after the row-parallel Jacobi decoding of
// arXiv 2606.05703): fewer are rejected for what was missing, but a draft that another one has seen may be
// rejected later. A row may advance by what the row above accepts in the same pass, and open by it.
std::unique_ptr<DraftMethod> make_pjd(const Method& method, const Models& models);

}  // namespace lamplighter
