#pragma once

#include <string>

#include "draft/options/options.h"

// The steps of resolve_method that take more than a row of the table.
namespace lamplighter {

[[noreturn]] void refuse(const std::string& message);  // Error(usage)

// "lambda is read by rule lantern++; this run uses rule exact": what reads the option, and what to change.
[[noreturn]] void refuse_unread(const MethodContext& run, const MethodOption& option);

// The drafter that the options name, else the first of the method's kind. Throws Error(bundle) where the
// bundle has none, Error(usage) for a drafter of another kind.
std::string find_drafter(const MethodContext& run);

// The tree where the options name none.
std::string usual_tree(const MethodContext& run);

// Throws Error(usage) for a tree that the method or the rule cannot use.
void check_tree(const MethodContext& run);

}  // namespace lamplighter
