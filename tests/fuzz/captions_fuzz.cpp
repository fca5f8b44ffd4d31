#include "batch/captions/captions.h"
#include "pipeline/requests/request_fields.h"
#include "tests/fuzz/fuzz.h"

// Caption sets in every format; lines of requests are one of them. The first byte picks the format.
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* bytes, std::size_t size) {
  using namespace lamplighter;
  if (size == 0) return 0;
  constexpr const char* kFormats[] = {"auto", "coco", "json", "jsonl", "tsv", "text"};
  const std::string_view set = fuzz::text(bytes, size).substr(1);
  return fuzz::meet([&] {
    std::vector<Caption> captions = parse_captions(set, "captions", kFormats[bytes[0] % 6]);
    for (const Caption& caption : captions) check_prompt(caption.request.prompt, caption.where);
    select_captions(std::move(captions), "longest");
  });
}
