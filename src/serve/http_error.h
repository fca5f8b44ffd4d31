#pragma once

#include <string>
#include <utility>

#include "lamplighter/error.h"

namespace lamplighter {

// The answer to a request over HTTP that fails.
class HttpError : public Error {
 public:
  // `code` is a word for programs; `retry_s`: seconds until another try may succeed, 0 = not known.
  HttpError(int status, std::string code, const std::string& message, int retry_s = 0)
      : Error(ExitCode::input, message), status_(status), word_(std::move(code)), retry_s_(retry_s) {}

  int status() const { return status_; }
  const std::string& word() const { return word_; }
  int retry_s() const { return retry_s_; }

 private:
  int status_;
  std::string word_;
  int retry_s_;
};

// An error of the library as an answer: 400 for what is wrong with the request, 503 for what the machine
// lacks, 500 for the rest.
HttpError to_http_error(const Error& error);

}  // namespace lamplighter
