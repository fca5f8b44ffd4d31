#include "tools/values.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <set>

#include "base/message.h"

namespace lamplighter::cli {
namespace {

constexpr const char *kWhole = "a whole number", *kNumber = "a number";

// Negative values have a meaning, or a later check reports them with what the bundle has.
const std::set<std::string> kSigned{"--cfg-interval", "--class", "--width", "--height"};
// Up to 2^64 - 1, or -1 (parse_seed).
constexpr const char* kSeed = "--seed";

constexpr const char* kList = "LIST";

// What a type name of --help stands for, in messages and for shells.
struct ValueType {
  const char *name, *expected;
  Completes completes = Completes::nothing;
};

constexpr ValueType kTypes[] = {{"N", kWhole},
                                {"K", kWhole},
                                {"BYTES", kWhole},
                                {"X", kNumber},
                                {"L", kNumber},
                                {"SECONDS", kNumber},
                                {"DIR", "a folder", Completes::folders},
                                {"FOLDERS", "folders", Completes::folders},
                                {"FILE", "a file", Completes::files},
                                {"IMAGE", "an image file", Completes::files},
                                {"CODES", "a file of codes", Completes::files},
                                {"NAME", "a name"},
                                {"NAME|FILE", "a name or a file", Completes::files},
                                {"KEY|FILE", "a key or a file", Completes::files},
                                {"PATTERN", "a name or a pattern of names", Completes::files},
                                {kList, "comma-separated values"}};

std::string kind_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  return type.substr(0, type.find(' '));
}

// Null for other names, which say themselves what is expected.
const ValueType* type_of(const CLI::Option& option) {
  const auto* const type = std::find_if(std::begin(kTypes), std::end(kTypes),
                                        [&](const ValueType& one) { return one.name == kind_of(option); });
  return type == std::end(kTypes) ? nullptr : type;
}

// Returns what is wrong with a whole number, or nothing. Drops leading zeros, which CLI11 would read as
// octal.
std::string check_whole(const std::string& flag, std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size()) return "got " + quote(text) + ", expected " + kWhole;
  if (error == std::errc::result_out_of_range) {
    const bool low = text.front() == '-';
    return "got " + excerpt_of(text) + ", expected " +
           (low ? std::string("0 or more")
                : "at most " + std::to_string(std::numeric_limits<std::int64_t>::max()));
  }
  if (value < 0 && kSigned.count(flag) == 0) return "got " + excerpt_of(text) + ", expected 0 or more";
  text = std::to_string(value);
  return "";
}

// CLI11 would take "{}" for a flag without a number.
std::string check_number(const std::string& text) {
  char* end = nullptr;
  std::strtod(text.c_str(), &end);
  return end == text.c_str() + text.size() ? "" : "got " + quote(text) + ", expected " + kNumber;
}

std::string check_value(const CLI::Option& option, std::string& text) {
  const std::string kind = kind_of(option), flag = option.get_name();
  if (text.empty()) {
    if (kind == "TEXT") return "";
    return std::string("got ") + (kind == "DIR" ? "an empty name" : "''") + ", expected " +
           expected_of(option);
  }
  const std::string expected = expected_of(option);
  if (expected == kWhole && flag != kSeed) return check_whole(flag, text);
  if (expected == kNumber && option.get_expected_max() == 1) return check_number(text);
  return "";
}

}  // namespace

void check_values(CLI::App& command) {
  for (CLI::Option* option : command.get_options()) {
    if (option->get_expected_max() == 0) continue;  // takes no value
    option->transform(
        CLI::Validator([option](std::string& text) { return check_value(*option, text); }, std::string()));
  }
}

std::string expected_of(const CLI::Option& option) {
  const ValueType* type = type_of(option);
  return type == nullptr ? option.get_type_name() : type->expected;
}

Completes completes(const CLI::Option& option) {
  const ValueType* type = type_of(option);
  return type == nullptr ? Completes::nothing : type->completes;
}

bool is_list(const CLI::Option& option) {
  return kind_of(option) == kList;
}

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
    end = text.find(',', begin);
    parts.push_back(text.substr(begin, end == std::string::npos ? end : end - begin));
  }
  return parts;
}

}  // namespace lamplighter::cli
