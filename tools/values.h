#pragma once

#include <CLI/CLI.hpp>
#include <charconv>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/message.h"

// What is typed behind flags. CLI11 takes an empty text for a default, numbers beyond their type for the
// nearest, and -1 for the largest number without a sign; a person meant none of that.
namespace lamplighter::cli {

// Checks the values of all flags of a command, also of those that a configuration file gives: none is empty
// but texts that are drawn, and whole numbers are decimal, fit into 64 bits and are 0 or more, unless the
// flag has a meaning for others.
void check_values(CLI::App& command);

// What the value of a flag is called in messages.
std::string expected_of(const CLI::Option& option);

// The parts of a text between commas, also those that are empty.
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

// A flag for values with commas between them, which may be given several times.
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
      if (!parse_value(part, value))
        return "got " + quote(text) + ", expected " + kind + " with commas between them";
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
