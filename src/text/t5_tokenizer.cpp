#include "text/t5_tokenizer.h"

#include <sentencepiece_processor.h>

#include <exception>
#include <map>
#include <new>
#include <optional>
#include <string_view>

#include "base/files.h"
#include "lamplighter/error.h"
#include "text/cleaning.h"

namespace lamplighter {

struct T5Tokenizer::Implementation {
  sentencepiece::SentencePieceProcessor processor;
  TokenizerEntry settings;
  std::map<std::string, std::int64_t, std::less<>> special;  // text to id

  void append_pieces(std::string_view text, std::vector<std::int64_t>& ids) const {
    std::vector<int> found;
    const auto status = processor.Encode(text, &found);
    if (!status.ok()) throw Error(ExitCode::input, "cannot tokenize a caption: " + status.ToString());
    ids.insert(ids.end(), found.begin(), found.end());
  }

  // What pieces spell; sentinels spell nothing.
  std::string text(const std::vector<std::int64_t>& ids) const {
    std::vector<int> known;
    for (const std::int64_t id : ids) {
      if (id < processor.GetPieceSize()) known.push_back(static_cast<int>(id));
    }
    std::string text;
    if (!processor.Decode(known, &text).ok()) text.clear();
    return text;
  }
};

namespace {

// Its trie throws the end of memory under another name.
sentencepiece::util::Status load(sentencepiece::SentencePieceProcessor& processor, const std::string& bytes) {
  try {
    return processor.LoadFromSerializedProto(bytes);
  } catch (const std::exception& error) {
    if (std::string_view(error.what()).find("bad_alloc") != std::string_view::npos) throw std::bad_alloc();
    throw;
  }
}

}  // namespace

T5Tokenizer::T5Tokenizer(const std::string& model, const TokenizerEntry& settings)
    : implementation_(std::make_unique<Implementation>()) {
  sentencepiece::SentencePieceProcessor& processor = implementation_->processor;
  const std::string bytes = read_file(model, ExitCode::bundle);
  const auto status = load(processor, bytes);
  if (!status.ok() || processor.GetPieceSize() == 0) {
    throw Error(ExitCode::bundle, model + ": no SentencePiece model: " + status.ToString());
  }
  const auto expect = [&](const char* name, std::int64_t got, std::int64_t expected) {
    if (got != expected) {
      throw Error(ExitCode::bundle, model + ": id of " + name + ": got " + std::to_string(got) +
                                        ", expected " + std::to_string(expected) + " as the manifest says");
    }
  };
  expect("<pad>", processor.pad_id(), settings.pad);
  expect("</s>", processor.eos_id(), settings.eos);
  expect("<unk>", processor.unk_id(), settings.unk);
  implementation_->settings = settings;
  auto& special = implementation_->special;
  special = {{"<pad>", settings.pad}, {"</s>", settings.eos}, {"<unk>", settings.unk}};
  for (std::int64_t k = 0; k < settings.extra_ids; ++k) {
    special["<extra_id_" + std::to_string(k) + ">"] = processor.GetPieceSize() + settings.extra_ids - 1 - k;
  }
}

T5Tokenizer::~T5Tokenizer() = default;
T5Tokenizer::T5Tokenizer(T5Tokenizer&&) noexcept = default;
T5Tokenizer& T5Tokenizer::operator=(T5Tokenizer&&) noexcept = default;

std::vector<std::int64_t> T5Tokenizer::pieces(std::string_view text) const {
  std::vector<std::int64_t> ids;
  std::size_t begin = 0;  // of the plain text not yet encoded
  for (std::size_t open = text.find('<'); open != std::string_view::npos; open = text.find('<', open + 1)) {
    const std::size_t close = text.find('>', open);
    if (close == std::string_view::npos) break;
    const auto found = implementation_->special.find(text.substr(open, close + 1 - open));
    if (found == implementation_->special.end()) continue;
    implementation_->append_pieces(text.substr(begin, open - begin), ids);
    ids.push_back(found->second);
    begin = close + 1;
    open = close;
  }
  implementation_->append_pieces(text.substr(begin), ids);
  return ids;
}

T5Caption T5Tokenizer::encode(std::string_view caption) const {
  const TokenizerEntry& settings = implementation_->settings;
  T5Caption result{pieces(clean_text(caption, settings.cleaning)), ""};
  std::vector<std::int64_t>& ids = result.ids;
  const auto room = static_cast<std::size_t>(settings.max_length - 1);
  if (ids.size() > room) {
    result.cut = implementation_->text({ids.begin() + static_cast<std::ptrdiff_t>(room), ids.end()});
    ids.resize(room);
  }
  ids.push_back(settings.eos);
  return result;
}

std::int64_t T5Tokenizer::vocabulary() const {
  return implementation_->processor.GetPieceSize() + implementation_->settings.extra_ids;
}

}  // namespace lamplighter
