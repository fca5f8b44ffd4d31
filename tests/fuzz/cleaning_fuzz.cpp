#include "base/utf8.h"
#include "tests/fuzz/fuzz.h"
#include "text/cleaning.h"

// A caption that passes the check is cleaned and stays valid text.
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* bytes, std::size_t size) {
  using namespace lamplighter;
  const std::string_view caption = fuzz::text(bytes, size);
  return fuzz::meet([&] {
    check_caption(caption, "caption");
    for (const char* cleaning : {"llamagen", "lower", "none"}) {
      const std::string cleaned = clean_text(caption, cleaning);
      if (encode_utf8(decode_utf8(cleaned)) != cleaned) std::abort();
    }
  });
}
