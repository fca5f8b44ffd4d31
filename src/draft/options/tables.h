#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "draft/options/option_values.h"
#include "draft/options/options.h"
#include "draft/options/resolve_parts.h"

// The parts of the table of options, and what their rows share.
namespace lamplighter {

// Numbers of acceptance rules, from the rules' rows.
std::vector<MethodOption> rule_number_options();
// What windows of drafts and image rows in parallel take.
std::vector<MethodOption> window_options();
// What methods of continuous tokens take.
std::vector<MethodOption> continuous_options();
std::vector<std::string> continuous_rules();

namespace option_rows {

using M = MethodOptions;
using Run = MethodContext;
using Value = MethodOption::Value;
using Usual = MethodOption::Usual;
using Narrow = std::vector<Limits>;

constexpr const char* kMethod = "Method";
constexpr const char* kRelaxed = "Relaxed rules";
constexpr double kAny = std::numeric_limits<double>::infinity();

inline Limits range(double least, double most = kAny, std::string why = "") {
  return {least, most, {}, std::move(why)};
}
inline Limits whole(std::int64_t least, std::int64_t most, std::string why = "") {
  return range(static_cast<double>(least), static_cast<double>(most), std::move(why));
}
inline Limits choices(std::vector<std::string> names, std::string why = "") {
  return {-kAny, kAny, std::move(names), std::move(why)};
}

inline Usual fixed(const char* text) {
  return {text, [=](const Run&) { return std::string(text); }};
}
inline Usual fixed(std::int64_t number) {
  return {std::to_string(number), [=](const Run&) { return number; }};
}
inline Usual fixed(float number) {
  return {number_text(number), [=](const Run&) { return number; }};
}
// An option that stays without a value, which means `words`.
inline Usual unset(const char* words) {
  return {words, {}};
}

inline MethodOption row(const char* key, const char* word, const char* label, const char* group,
                        const char* value, std::string help, MethodOption::Field field,
                        std::function<bool(const Run&)> reads, Limits limits = {}, Usual usual = {},
                        std::function<Narrow(const Run&)> narrow = {}, const char* follows = "") {
  return {key,
          word,
          label,
          group,
          value,
          std::move(help),
          field,
          std::move(reads),
          std::move(limits),
          std::move(usual),
          std::move(narrow),
          follows};
}

// An option of the short form of --help.
inline MethodOption common(MethodOption option) {
  option.is_common = true;
  return option;
}

// An option with words that limits do not bound.
inline MethodOption with_words(MethodOption option, std::vector<std::string> words) {
  option.words = std::move(words);
  return option;
}

inline bool verifies_paths(const Run& run) {
  return traits_of(run.rule).walk == Walk::paths;
}

inline std::string for_method(const Run& run) {
  return std::string(" for method ") + run.entry.name;
}
inline std::string for_rule(const Run& run) {
  return " for rule " + to_string(run.rule);
}

}  // namespace option_rows
}  // namespace lamplighter
