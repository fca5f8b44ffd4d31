#include "bench/sweep.h"

#include <algorithm>
#include <utility>

#include "base/message.h"
#include "draft/options/options.h"
#include "lamplighter/error.h"

namespace lamplighter {
namespace {

[[noreturn]] void refuse(const std::string& got, const std::string& expected) {
  throw Error(ExitCode::usage, "sweep: got " + got + ", expected " + expected);
}

void add_value(SweptOption& swept, const std::string& value) {
  const std::string word = swept.option->word;
  if (value.empty()) refuse(word + " with an empty value", "one or more values");
  if (std::count(swept.values.begin(), swept.values.end(), value) > 0)
    refuse(word + "=" + value + " twice", "every value once");
  MethodOptions tried;
  if (!parse_option(tried, *swept.option, value)) refuse(quote(value) + " for " + word, "a number");
  swept.values.push_back(value);
}

}  // namespace

Sweep parse_sweep(const std::vector<std::string>& pieces) {
  Sweep sweep;
  for (const std::string& piece : pieces) {
    const std::size_t equals = piece.find('=');
    if (equals != std::string::npos) {
      const std::string word = piece.substr(0, equals);
      const MethodOption& option = find_option(word, "sweep");
      for (const SweptOption& other : sweep) {
        if (other.option == &option) refuse(word + " twice", "every option once");
      }
      sweep.push_back({&option, {}});
    } else if (sweep.empty()) {
      refuse(quote(piece), "KEY=VALUE,VALUE...");
    }
    add_value(sweep.back(), equals == std::string::npos ? piece : piece.substr(equals + 1));
  }
  return sweep;
}

std::vector<BenchMethod> expand(std::vector<BenchMethod> methods, const Sweep& sweep) {
  for (const SweptOption& swept : sweep) {
    const MethodOption& option = *swept.option;
    std::vector<BenchMethod> all;
    bool used = false;
    for (const BenchMethod& method : methods) {
      if (is_set(method.options, option) || !can_vary(method.options, option)) {
        all.push_back(method);
        continue;
      }
      used = true;
      for (const std::string& value : swept.values) {
        all.push_back({method.name + ":" + option.word + "=" + value, method.options});
        parse_option(all.back().options, option, value);
      }
    }
    if (!used) {
      refuse(std::string(option.word) + "=" + swept.values.front(),
             std::string("a method that uses it and does not set ") + option.word);
    }
    methods = std::move(all);
  }
  return methods;
}

}  // namespace lamplighter
