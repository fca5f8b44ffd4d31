#include "lamplighter/image.h"
#include "tests/fuzz/fuzz.h"

// Text and pixels of untrusted image files.
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* bytes, std::size_t size) {
  using namespace lamplighter;
  const std::string path = fuzz::file_of(fuzz::text(bytes, size));
  fuzz::meet([&] { read_image_text(path); });
  return fuzz::meet([&] { read_png(path); });
}
