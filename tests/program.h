#pragma once

#include <exception>
#include <iostream>
#include <string>

namespace lamplighter {

// What main() of a program for tests returns: 2 after its usage, which begins with its name, where the
// arguments do not fit; 1 after the message of what `run` throws; else 0.
template <class F>
int run_program(const std::string& usage, bool fits, const F& run) {
  if (!fits) {
    std::cerr << "usage: " << usage << '\n';
    return 2;
  }
  try {
    run();
  } catch (const std::exception& error) {
    std::cerr << usage.substr(0, usage.find(' ')) << ": " << error.what() << '\n';
    return 1;
  }
  return 0;
}

}  // namespace lamplighter
