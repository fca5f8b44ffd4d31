#include "batch/captions/captions.h"
#include "batch/captions/entries.h"
#include "pipeline/metadata/request_fields.h"
#include "tests/fuzz/fuzz.h"
#include "text/prompt_syntax.h"

// Caption sets and prompt files in every format. The first byte selects the format and whether a column is
// named.
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* bytes, std::size_t size) {
  using namespace lamplighter;
  if (size == 0) return 0;
  constexpr const char* kFormats[] = {"auto", "coco", "json", "jsonl", "tsv", "text", "csv", "lines"};
  const std::string_view set = fuzz::text(bytes, size).substr(1);
  captions::SourceOptions options;
  options.format = kFormats[bytes[0] % 8];
  if ((bytes[0] & 8U) != 0) options.column = "note";
  // Prompt files are read entry by entry, also those that are no UTF-8.
  fuzz::meet([&] {
    captions::is_line_stream(set);
    const std::string text = captions::decode_text(std::string(set), "prompts");
    captions::read_entries(text, "prompts", options, [](const captions::Entry& entry) {
      PromptSyntax().add(entry.text);
      own_settings(entry.fields);
    });
  });
  return fuzz::meet([&] {
    std::vector<Caption> captions = parse_captions(set, "captions", options.format, options.column);
    for (const Caption& caption : captions) check_prompt(caption.request.prompt, caption.where);
    select_captions(std::move(captions), "longest");
  });
}
