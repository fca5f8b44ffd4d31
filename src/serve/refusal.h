#pragma once

#include <string>
#include <utility>

#include "lamplighter/error.h"

namespace lamplighter {

// Why a request over HTTP is not answered with pictures.
class Refusal : public Error {
 public:
  // `code` is a word for programs; `retry_s`: seconds until another try may do, 0 = not known.
  Refusal(int status, std::string code, const std::string& message, int retry_s = 0)
      : Error(ExitCode::input, message), status_(status), word_(std::move(code)), retry_s_(retry_s) {}

  int status() const { return status_; }
  const std::string& word() const { return word_; }
  int retry_s() const { return retry_s_; }

 private:
  int status_;
  std::string word_;
  int retry_s_;
};

// An error of the library as an answer: what a request says wrong is 400, what the machine lacks 503, the
// rest 500.
Refusal to_refusal(const Error& error);

}  // namespace lamplighter
