#pragma once

#include <gmock/gmock.h>

#include <optional>
#include <string>

#include "lamplighter/error.h"

namespace lamplighter {

// The message of the error that an action throws, which is one line, "" where it throws none. code: what the
// error has to have.
template <class F>
std::string error_of(std::optional<ExitCode> code, const F& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code.value_or(error.code())) << error.what();
    EXPECT_THAT(error.what(), ::testing::Not(::testing::HasSubstr("\n")));
    return error.what();
  }
  return "";
}

template <class F>
std::string error_of(const F& action) {
  return error_of({}, action);
}

}  // namespace lamplighter
