// golden_prompts BUNDLE: reads JSON lines {"prompt", "width", "height"} with an optional "negative_prompt",
// and writes {"ids", "unconditional"}, the prompt tokens of the bundle.
#include <iostream>
#include <string>

#include "base/json.h"
#include "decode/prompts.h"
#include "tests/program.h"

int main(int count, char** arguments) {
  using namespace lamplighter;
  return run_program("golden_prompts BUNDLE < requests.jsonl", count == 2, [&] {
    const Manifest manifest = read_manifest(arguments[1]);
    const PromptTokenizer tokenizer(manifest);
    for (std::string line; std::getline(std::cin, line);) {
      const Json request = parse_json(line, "request", ExitCode::input);
      JsonReader reader(request, "request", ExitCode::input);
      Request wanted;
      wanted.prompt = reader.text("prompt");
      if (reader.has("negative_prompt")) wanted.negative_prompt = reader.text("negative_prompt");
      wanted.width = static_cast<int>(reader.integer("width"));
      wanted.height = static_cast<int>(reader.integer("height"));
      const PromptIds prompt = tokenizer.encode(wanted, find_grid(manifest, wanted.width, wanted.height));
      std::cout << Json{{"ids", prompt.ids}, {"unconditional", prompt.unconditional}}.dump() << '\n';
    }
  });
}
