#include <cstdlib>

#include "serve/multipart.h"
#include "tests/fuzz/fuzz.h"

// The first line is the Content-Type, the rest the body. Contents lie in the body, one behind another.
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* bytes, std::size_t size) {
  using namespace lamplighter;
  const std::string_view text = fuzz::text(bytes, size);
  const std::size_t line = text.find('\n');
  if (line == std::string_view::npos) return 0;
  const std::string_view body = text.substr(line + 1);
  try {
    const char* at = body.data();
    for (const FormField& field : parse_form(text.substr(0, line), body)) {
      if (field.content.data() < at || field.content.data() + field.content.size() > text.data() + size)
        std::abort();
      at = field.content.data() + field.content.size();
    }
  } catch (const Error&) {
  }
  return 0;
}
