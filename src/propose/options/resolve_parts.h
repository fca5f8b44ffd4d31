#pragma once

#include <cstdint>
#include <string>

#include "acceptance/rules.h"
#include "lamplighter/bundle.h"
#include "propose/registry.h"
#include "tree/tree.h"

// The steps of resolve_method. Each fills in what the user left open and throws Error (usage, input) for what
// does not go together.
namespace lamplighter {

[[noreturn]] void refuse(const std::string& message);  // Error(usage)
// Options that only methods with this need read, where the run's method has it not; `of`: what they ask for.
void refuse_options(const MethodOptions& method, const std::string& need, const std::string& of);

// The numbers that the rule reads.
void resolve_rule(MethodOptions& method, Rule rule, std::int64_t codes);

// What a window of drafts begins with and keeps.
void resolve_window(MethodOptions& method, const MethodEntry& entry);
// A window with several candidates for a place, or one whose first places a drafter fills.
void resolve_fan(MethodOptions& method, Rule rule, const MethodEntry& entry, const Tree& tree,
                 const Manifest& manifest);
// Rows that are drawn side by side need a picture of codes alone.
void check_rows(const MethodOptions& method, const Manifest& manifest);
// All of a method whose rows are not judged.
void resolve_rows(MethodOptions& method, const Manifest& manifest);

void resolve_tree(MethodOptions& method, Rule rule, const MethodEntry& entry, const Manifest& manifest,
                  const std::string& device, int batch);
// Heads guess so many tokens at most.
void check_heads(const MethodOptions& method, Rule rule, const MethodEntry& entry, const Manifest& manifest);
// Whether chains can end early at all, which the user's tree does not change; and whether they do.
void check_length(const MethodOptions& method, const MethodEntry& entry);
void resolve_length(MethodOptions& method);

}  // namespace lamplighter
