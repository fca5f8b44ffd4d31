#include "batch/failure.h"

#include <optional>

#include "base/message.h"
#include "bundle/machine.h"
#include "lamplighter/error.h"

namespace lamplighter {

std::string first_line(const std::exception& error) {
  const std::optional<Error> told = machine_error(error);
  const std::string text = told ? told->what() : error.what();
  if (told || dynamic_cast<const Error*>(&error) != nullptr) return one_line(text);
  return one_line(text.substr(0, text.find('\n')));  // libraries add stack traces
}

bool ends_run(const std::exception& error) {
  const auto* told = dynamic_cast<const Error*>(&error);
  if (told == nullptr) return false;
  const ExitCode code = told->code();
  return code == ExitCode::output || code == ExitCode::interrupted || code == ExitCode::some_failed ||
         code == ExitCode::usage || code == ExitCode::input || code == ExitCode::bundle;
}

}  // namespace lamplighter
