#include "tests/fuzz/fuzz.h"
#include "text/bpe_tokenizer.h"

// An accepted tokenizer encodes and decodes text.
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* bytes, std::size_t size) {
  using namespace lamplighter;
  const std::string path = fuzz::file_of(fuzz::text(bytes, size));
  return fuzz::meet([&] {
    const BpeTokenizer tokenizer(path);
    tokenizer.decode(tokenizer.encode("A red boat, 12 gulls' shadows\n at d\xC3\xA4mmerung \xFF"));
  });
}
