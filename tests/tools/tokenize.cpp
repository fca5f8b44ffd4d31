// tokenize MODEL MAX_LENGTH [EXTRA_IDS]: reads JSON lines {"text": ..., "cleaning": ...}, writes {"text":
// cleaned, "ids": [...]}.
#include <iostream>
#include <string>

#include "base/json.h"
#include "text/cleaning.h"
#include "text/t5_tokenizer.h"

int main(int count, char** arguments) {
  using namespace lamplighter;
  if (count < 3) {
    std::cerr << "usage: tokenize MODEL MAX_LENGTH [EXTRA_IDS] < requests.jsonl\n";
    return 2;
  }
  try {
    TokenizerEntry settings;
    settings.max_length = std::stoll(arguments[2]);
    settings.extra_ids = count > 3 ? std::stoll(arguments[3]) : 100;
    settings.cleaning = "none";
    const T5Tokenizer tokenizer(arguments[1], settings);
    for (std::string line; std::getline(std::cin, line);) {
      const Json request = parse_json(line, "request", ExitCode::input);
      JsonReader reader(request, "request", ExitCode::input);
      const std::string text = clean_text(reader.text("text"), reader.text("cleaning"));
      std::cout << Json{{"text", text}, {"ids", tokenizer.encode(text)}}.dump() << '\n';
    }
  } catch (const std::exception& error) {
    std::cerr << "tokenize: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
