#include <algorithm>
#include <utility>
#include <vector>

#include "base/suggestion.h"
#include "draft/options/resolve.h"
#include "draft/options/resolve_parts.h"
#include "draft/options/tables.h"
#include "lamplighter/error.h"
#include "tree/tree.h"

namespace lamplighter {
namespace {

// An option that decides what else is read, and its values.
struct Selector {
  const char* key;
  std::string MethodOptions::*field;
  std::vector<std::string> values;
};

std::vector<Selector> selectors_of(bool continuous) {
  if (continuous) return {{"rule", &MethodOptions::rule, continuous_rules()}};
  return {{"rule", &MethodOptions::rule, rule_names()},
          {"tree", &MethodOptions::tree, {kDynamicTree}},
          {"draft_length", &MethodOptions::draft_length, {"auto"}}};
}

// The values of a selector with which the option is read.
std::vector<std::string> readers_by(const Selector& selector, const MethodContext& run,
                                    const MethodOption& option) {
  std::vector<std::string> readers;
  for (const std::string& value : selector.values) {
    MethodOptions changed = run.options;
    changed.*selector.field = value;
    const Rule rule = run.continuous ? run.rule : rule_of(changed);
    if (option.reads({changed, run.entry, rule, run.continuous})) readers.push_back(value);
  }
  return readers;
}

// Methods that read the option: by themselves, or else those that do with another rule or tree.
std::vector<std::string> methods_reading(const MethodContext& run, const MethodOption& option) {
  std::vector<std::string> readers, others;
  for (const MethodEntry& entry : methods()) {
    if (entry.drafts() && entry.is_continuous() != run.continuous) continue;
    MethodOptions plain;
    plain.method = entry.name;
    const MethodContext other{plain, entry, entry.rule, run.continuous};
    const std::vector<Selector> selectors = selectors_of(run.continuous);
    if (option.reads(other)) {
      readers.emplace_back(entry.name);
    } else if (std::any_of(selectors.begin(), selectors.end(), [&](const Selector& selector) {
                 return !readers_by(selector, other, option).empty();
               })) {
      others.emplace_back(entry.name);
    }
  }
  return readers.empty() ? others : readers;
}

std::string value_of(const Selector& selector, const MethodContext& run) {
  const std::string& value = run.options.*selector.field;
  return value.empty() ? "full" : tree_name(value);  // a draft_length that is not set
}

}  // namespace

void refuse(const std::string& message) {
  throw Error(ExitCode::usage, message);
}

void refuse_unread(const MethodContext& run, const MethodOption& option) {
  const auto refuse_for = [&](const std::string& key, const std::vector<std::string>& readers,
                              const std::string& used) {
    refuse(std::string(option.key) + " is read by " + key + " " + list_of(readers) + "; this run uses " +
           key + " " + used);
  };
  for (const Selector& selector : selectors_of(run.continuous)) {
    const std::vector<std::string> readers = readers_by(selector, run, option);
    if (!readers.empty()) refuse_for(selector.key, readers, value_of(selector, run));
  }
  const std::vector<std::string> readers = methods_reading(run, option);
  if (!readers.empty()) refuse_for("method", readers, run.options.method);
  refuse(std::string(option.key) + " is read for tokens that are " +
         (run.continuous ? "codes" : "continuous") + "; this run uses model " + run.manifest->name +
         ", whose tokens are " + (run.continuous ? "continuous" : "codes") + "; leave it out");
}

}  // namespace lamplighter
