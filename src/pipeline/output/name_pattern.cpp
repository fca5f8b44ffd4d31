#include "pipeline/output/name_pattern.h"

#include <algorithm>
#include <cctype>
#include <cstddef>

#include "base/message.h"
#include "lamplighter/error.h"

namespace lamplighter {
namespace {

constexpr std::size_t kMaxDigits = 20;
constexpr std::size_t kMaxName = 200;  // bytes; file systems take 255

// A pattern and the option that it comes from.
struct Pattern {
  const std::string &what, &text;
};

[[noreturn]] void reject(const Pattern& pattern, const std::string& expected) {
  throw Error(ExitCode::usage, pattern.what + ": got " + quote(pattern.text) + ", expected " + expected);
}

bool is_figure(char c) {
  return c >= '0' && c <= '9';
}

// Formats a number by "", "5" or "05": as it is, or padded with blanks or zeros.
std::string by_digits(const Pattern& pattern, std::uint64_t number, const std::string& digits) {
  const std::size_t width = digits.empty() ? 0 : std::stoul(digits);
  if (width > kMaxDigits) reject(pattern, "%d or %0Nd with N up to 20");
  const std::string text = std::to_string(number);
  const char fill = !digits.empty() && digits[0] == '0' ? '0' : ' ';
  return text.size() >= width ? text : std::string(width - text.size(), fill) + text;
}

std::string names_of(const NameFields& fields) {
  std::string names;
  std::size_t left = fields.size();
  for (const auto& [name, value] : fields)
    names += "{" + name + "}" + (--left == 0 ? "" : left == 1 ? " or " : ", ");
  return names;
}

// The text for the field "name" or "name:05d".
std::string by_name(const Pattern& pattern, const std::string& inside, const NameFields& fields) {
  const std::size_t colon = inside.find(':');
  const auto field = fields.find(inside.substr(0, colon));
  if (field == fields.end()) reject(pattern, names_of(fields) + " between braces");
  const auto* number = std::get_if<std::uint64_t>(&field->second);
  if (colon == std::string::npos)
    return number != nullptr ? std::to_string(*number) : std::get<std::string>(field->second);
  std::string digits = inside.substr(colon + 1);
  const bool is_width = !digits.empty() && digits.size() <= 4 &&
                        digits.find_first_not_of("0123456789d") == std::string::npos &&
                        digits.find('d') + 1 == digits.size();
  if (number == nullptr || !is_width) reject(pattern, "a width like {index:05d}, and of a number");
  digits.pop_back();
  return by_digits(pattern, *number, digits);
}

}  // namespace

std::string expand_name(const std::string& what, const std::string& pattern, const NameFields& fields) {
  std::string path;
  for (std::size_t at = 0; at < pattern.size();) {
    if (pattern[at] == '{') {
      const std::size_t end = pattern.find('}', at);
      const bool closed = end != std::string::npos;
      path += by_name({what, pattern}, closed ? pattern.substr(at + 1, end - at - 1) : "", fields);
      at = end + 1;
    } else if (pattern[at] == '%') {
      std::size_t end = at + 1;
      while (end < pattern.size() && is_figure(pattern[end])) ++end;
      if (end < pattern.size() && pattern[end] == 'd' && end - at <= 3) {
        path += by_name({what, pattern}, "index:" + pattern.substr(at + 1, end - at), fields);
        at = end + 1;
      } else {
        path += '%';
        at += pattern.compare(at, 2, "%%") == 0 ? 2 : 1;
      }
    } else {
      path += pattern[at++];
    }
  }
  return path;
}

std::string name_of_caption(const std::string& caption) {
  constexpr std::size_t longest = 80;
  std::string name;
  for (const unsigned char c : caption) {
    const bool kept = c >= 0x80 || std::isalnum(c) != 0;
    if (kept) {
      name += static_cast<char>(c < 0x80 ? std::tolower(c) : c);
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
  }
  if (name.size() > longest) {
    std::size_t end = longest;
    while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0U) == 0x80) --end;  // within a letter
    name.resize(end);
  }
  while (!name.empty() && name.back() == '-') name.pop_back();
  return name.empty() ? "image" : name;
}

bool is_plain_name(const std::string& name) {
  return !name.empty() && name.size() <= kMaxName && name[0] != '.' && name[0] != '-' &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-';
         });
}

}  // namespace lamplighter
