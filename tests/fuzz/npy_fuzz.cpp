#include "acceptance/neighbours.h"
#include "tests/fuzz/fuzz.h"

// Tables of nearest codes in LANTERN's file format.
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* bytes, std::size_t size) {
  using namespace lamplighter;
  const std::string path = fuzz::file_of(fuzz::text(bytes, size));
  return fuzz::meet([&] { read_npy_neighbours(path); });
}
