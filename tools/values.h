#pragma once

#include <CLI/CLI.hpp>
#include <charconv>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/message.h"

// Strict values of flags. CLI11 alone takes an empty text for the default, clamps numbers that are out of
// range and wraps -1 to the largest unsigned number; here all three are errors.
namespace lamplighter::cli {

// Checks the values of all flags of a command, from the command line or a configuration file. Only prompts
// may be empty. Whole numbers are decimal, fit into 64 bits and are 0 or more, except where a flag gives
// negative numbers a meaning.
void check_values(CLI::App& command);

// Names the value of a flag for messages: "a whole number".
std::string expected_of(const CLI::Option& option);

// What a shell completes for a value of this type, beside the words of the flag (HelpPage::choices).
enum class Completes { nothing, files, folders };
Completes completes(const CLI::Option& option);

// Whether a value is a list: "sjd,eagle".
bool is_list(const CLI::Option& option);

// Splits a text at its commas and keeps empty parts.
std::vector<std::string> split_list(const std::string& text);

template <class T>
bool parse_value(const std::string& text, T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    value = text;
    return !text.empty();
  } else {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size();
  }
}

// Adds a flag that takes comma-separated values and may be repeated.
template <class T>
CLI::Option* add_list(CLI::App& command, const std::string& names, std::vector<T>& values,
                      const std::string& help) {
  const auto take = [&values](const CLI::results_t& given) {
    std::vector<T> all;
    for (const std::string& text : given) {
      for (const std::string& part : split_list(text)) {
        T value{};
        if (!parse_value(part, value)) return false;
        all.push_back(std::move(value));
      }
    }
    values = std::move(all);
    return true;
  };
  const auto check = [](const std::string& text) -> std::string {
    constexpr const char* kind = std::is_integral_v<T>         ? "whole numbers"
                                 : std::is_floating_point_v<T> ? "numbers"
                                                               : "words";
    for (const std::string& part : split_list(text)) {
      T value{};
      if (!parse_value(part, value)) return "got " + quote(text) + ", expected comma-separated " + kind;
    }
    return "";
  };
  return command.add_option(names, take, help)
      ->expected(1, CLI::detail::expected_max_vector_size)
      ->allow_extra_args(false)
      ->check(check)
      ->type_name("LIST");
}

}  // namespace lamplighter::cli
