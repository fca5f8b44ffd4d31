#pragma once

#include <gtest/gtest.h>

#include <string>

#include "lamplighter/error.h"

namespace lamplighter::test {

// Message of the Error that f() throws.
template <class F>
std::string refusal(F f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "";
}

}  // namespace lamplighter::test
