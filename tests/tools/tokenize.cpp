// tokenize MODEL MAX_LENGTH [EXTRA_IDS]: T5. Reads JSON lines {"text": ..., "cleaning": ...}, writes {"text":
// cleaned, "ids": [...]}.
// tokenize TOKENIZER.json: byte-level BPE. Reads JSON lines {"bytes": hexadecimal} and writes {"ids": [...],
// "kept": text of the ids, "skipped": text without special tokens}, or reads {"ids": [...]} and writes the
// texts.
#include <cstdint>
#include <iostream>
#include <string>

#include "base/json.h"
#include "tests/program.h"
#include "text/bpe_tokenizer.h"
#include "text/cleaning.h"
#include "text/t5_tokenizer.h"

namespace {

using namespace lamplighter;

std::string unhex(const std::string& figures) {
  std::string bytes;
  for (std::size_t at = 0; at + 1 < figures.size(); at += 2) {
    bytes += static_cast<char>(std::stoi(figures.substr(at, 2), nullptr, 16));
  }
  return bytes;
}

template <class Answer>
void answer_lines(const Answer& answer) {
  for (std::string line; std::getline(std::cin, line);) {
    const Json request = parse_json(line, "request", ExitCode::input);
    JsonReader reader(request, "request", ExitCode::input);
    std::cout << answer(reader).dump(-1, ' ', true) << '\n';
  }
}

void run_t5(int count, char** arguments) {
  TokenizerEntry settings;
  settings.max_length = std::stoll(arguments[2]);
  settings.extra_ids = count > 3 ? std::stoll(arguments[3]) : 100;
  settings.cleaning = "none";
  const T5Tokenizer tokenizer(arguments[1], settings);
  answer_lines([&](JsonReader& request) {
    const std::string text = clean_text(request.text("text"), request.text("cleaning"));
    return Json{{"text", text}, {"ids", tokenizer.encode(text).ids}};
  });
}

void run_bpe(const std::string& path) {
  const BpeTokenizer tokenizer(path);
  answer_lines([&](JsonReader& request) {
    const std::vector<std::int64_t> ids =
        request.has("ids") ? request.integers("ids") : tokenizer.encode(unhex(request.text("bytes")));
    return Json{{"ids", ids}, {"kept", tokenizer.decode(ids)}, {"skipped", tokenizer.decode(ids, true)}};
  });
}

}  // namespace

int main(int count, char** arguments) {
  constexpr const char* kUsage =
      "tokenize MODEL MAX_LENGTH [EXTRA_IDS] < requests.jsonl\n"
      "       tokenize TOKENIZER.json < requests.jsonl";
  return lamplighter::run_program(kUsage, count >= 2, [&] {
    if (count == 2) return run_bpe(arguments[1]);
    run_t5(count, arguments);
  });
}
