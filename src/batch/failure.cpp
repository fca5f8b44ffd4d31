#include "batch/failure.h"

#include <optional>

#include "base/message.h"
#include "device/machine.h"
#include "lamplighter/error.h"

namespace lamplighter {

std::string first_line(const std::exception& error) {
  const std::optional<Error> known = machine_error(error);
  const std::string text = known ? known->what() : error.what();
  if (known || dynamic_cast<const Error*>(&error) != nullptr) return one_line(text);
  return one_line(text.substr(0, text.find('\n')));  // libraries add stack traces
}

bool ends_run(const std::exception& error) {
  const auto* known = dynamic_cast<const Error*>(&error);
  if (known == nullptr) return false;
  const ExitCode code = known->code();
  return code == ExitCode::output || code == ExitCode::interrupted || code == ExitCode::some_failed ||
         code == ExitCode::usage || code == ExitCode::input || code == ExitCode::bundle;
}

}  // namespace lamplighter
