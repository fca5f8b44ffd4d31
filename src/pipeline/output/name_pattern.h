#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>

namespace lamplighter {

// The value of a field between braces: a number or a text.
using NameFields = std::map<std::string, std::variant<std::uint64_t, std::string>>;

// Makes a file name of the pattern of option `what`: {seed} is a field as it is, {seed:05d} a number with
// leading zeros, %d and %04d the field `index`, %% a percent sign; another % stands for itself. Throws
// Error(ExitCode::usage) for fields that are not among `fields` and for malformed ones.
std::string expand_name(const std::string& what, const std::string& pattern, const NameFields& fields);

// A caption as a part of a file's name: its letters and digits, small, with a dash for whatever stands
// between them, at most 80 bytes; "image" where it has none. Letters other than ASCII's stay as they are.
std::string name_of_caption(const std::string& caption);

// Whether a name is up to 200 letters, digits, ".", "_" and "-", the first no "." or "-": no path, and
// nothing that a tool takes for a flag or a hidden file.
bool is_plain_name(const std::string& name);

}  // namespace lamplighter
