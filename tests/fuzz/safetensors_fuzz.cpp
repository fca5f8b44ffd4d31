#include "base/safetensors.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* bytes, std::size_t size) {
  using namespace lamplighter;
  return fuzz::meet(
      [&] { Safetensors::parse(std::string(fuzz::text(bytes, size)), "fuzz.safetensors", ExitCode::input); });
}
