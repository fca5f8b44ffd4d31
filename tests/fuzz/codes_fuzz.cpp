#include "pipeline/output/codes_file.h"
#include "tests/fuzz/fuzz.h"

// Files of --save-codes, as `decode` reads them.
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* bytes, std::size_t size) {
  using namespace lamplighter;
  const std::string path = fuzz::file_of(fuzz::text(bytes, size));
  return fuzz::meet([&] { read_codes(path); });
}
