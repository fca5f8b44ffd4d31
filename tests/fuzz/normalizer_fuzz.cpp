#include <cstdlib>
#include <stdexcept>

#include "base/utf8.h"
#include "tests/fuzz/fuzz.h"
#include "text/t5_normalizer.h"

// Tables of SentencePiece models. An accepted one normalizes text to text.
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* bytes, std::size_t size) {
  using namespace lamplighter;
  std::string model(fuzz::text(bytes, size));
  try {
    const T5Normalizer normalizer(model);
    const std::string text =
        normalizer.normalize("a boat e\xCC\x81\xCC\x82 \xEF\xAC\x81 \xC2\x85\xE1\x84\x80 \xFF");
    if (encode_utf8(decode_utf8(text)) != text) std::abort();
  } catch (const std::invalid_argument&) {
  }
  return 0;
}
