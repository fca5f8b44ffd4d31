#include <cstdlib>
#include <fstream>

#include "lamplighter/bundle.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* bytes, std::size_t size) {
  using namespace lamplighter;
  // A bundle's folder in memory, one per process, because several fuzzers run at the same time.
  static const std::string folder = [] {
    char name[] = "/dev/shm/lamplighter-fuzz-XXXXXX";
    if (::mkdtemp(name) == nullptr) std::abort();
    static const std::string made = name;
    std::atexit([] {
      ::unlink((made + "/manifest.json").c_str());
      ::rmdir(made.c_str());
    });
    return made;
  }();
  std::ofstream(folder + "/manifest.json", std::ios::binary) << fuzz::text(bytes, size);
  return fuzz::meet([&] { read_manifest(folder); });
}
