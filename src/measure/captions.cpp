#include "measure/captions.h"

#include <cstdint>
#include <iterator>

#include "base/files.h"
#include "text/code_list.h"

namespace lamplighter {
namespace {

constexpr const char* kCaptions[] = {"a white lighthouse on the coast at dusk",
                                     "a red boat on the sea at noon", "a blue house in the snow at night",
                                     "a yellow windmill on a meadow in the morning"};

}  // namespace

std::vector<std::string> default_prompts(const Manifest& manifest) {
  std::vector<std::string> prompts(std::begin(kCaptions), std::end(kCaptions));
  if (!manifest.tokenizer || manifest.tokenizer->kind != "codes") return prompts;
  const CodeLists lists(join_path(manifest.directory, manifest.tokenizer->file));
  std::uint64_t state = 1;
  for (std::string& prompt : prompts) {
    std::vector<std::int32_t> codes(static_cast<std::size_t>(lists.longest()));
    for (std::int32_t& code : codes) {
      state = state * 6364136223846793005U + 1442695040888963407U;  // Knuth's
      code = static_cast<std::int32_t>((state >> 33U) % static_cast<std::uint64_t>(lists.codes()));
    }
    prompt = code_list(codes);
  }
  return prompts;
}

}  // namespace lamplighter
