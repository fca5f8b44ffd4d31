#include "text/t5_tokenizer.h"

#include <sentencepiece_processor.h>

#include <algorithm>
#include <exception>
#include <map>
#include <new>
#include <optional>
#include <stdexcept>
#include <string_view>

#include "base/files.h"
#include "lamplighter/error.h"
#include "text/cleaning.h"
#include "text/t5_normalizer.h"
#include "text/unread.h"

namespace lamplighter {
namespace {

struct Piece {
  std::int64_t id;
  std::size_t begin;  // in the text, in bytes
};

}  // namespace

struct T5Tokenizer::Implementation {
  std::optional<T5Normalizer> normalizer;
  sentencepiece::SentencePieceProcessor processor;  // of a model that does not normalize
  TokenizerEntry settings;
  std::map<std::string, std::int64_t, std::less<>> special;  // text to id

  // Appends the pieces of a part of a text that begins at byte `offset` of it.
  void append_pieces(std::string_view part, std::size_t offset, std::vector<Piece>& pieces) const {
    sentencepiece::ImmutableSentencePieceText found;
    std::vector<std::size_t> origins;
    const auto status = processor.Encode(normalizer->normalize(part, &origins), found.mutable_proto());
    if (!status.ok()) throw Error(ExitCode::input, "cannot tokenize a caption: " + status.ToString());
    for (const auto& piece : found.pieces()) {
      const std::size_t begin = piece.begin() < origins.size() ? origins[piece.begin()] : part.size();
      pieces.push_back({static_cast<std::int64_t>(piece.id()), offset + begin});
    }
  }

  std::vector<Piece> split(std::string_view text) const {
    std::vector<Piece> pieces;
    std::size_t begin = 0;  // of the plain text that is not encoded yet
    for (std::size_t open = text.find('<'); open != std::string_view::npos; open = text.find('<', open + 1)) {
      const std::size_t close = text.find('>', open);
      if (close == std::string_view::npos) break;
      const auto found = special.find(text.substr(open, close + 1 - open));
      if (found == special.end()) continue;
      append_pieces(text.substr(begin, open - begin), begin, pieces);
      pieces.push_back({found->second, open});
      begin = close + 1;
      open = close;
    }
    append_pieces(text.substr(begin), begin, pieces);
    return pieces;
  }
};

namespace {

// SentencePiece's trie reports exhausted memory by its own exception.
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
  std::string bytes = read_file(model, ExitCode::bundle, limits::kTokenizer);
  try {
    implementation_->normalizer.emplace(bytes);
  } catch (const std::invalid_argument& error) {
    throw Error(ExitCode::bundle, model + ": not a SentencePiece model: " + error.what());
  }
  const auto status = load(processor, bytes);
  if (!status.ok() || processor.GetPieceSize() == 0) {
    throw Error(ExitCode::bundle, model + ": not a SentencePiece model: " + status.ToString());
  }
  const auto expect = [&](const char* name, const char* field, std::int64_t got, std::int64_t expected) {
    if (got != expected) {
      throw Error(ExitCode::bundle, model + ": id of " + name + ": got " + std::to_string(got) +
                                        ", expected " + std::to_string(expected) +
                                        " as the manifest's tokenizer." + field + " says");
    }
  };
  expect("<pad>", "pad", processor.pad_id(), settings.pad);
  expect("</s>", "eos", processor.eos_id(), settings.eos);
  expect("<unk>", "unk", processor.unk_id(), settings.unk);
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
  for (const Piece& piece : implementation_->split(text)) ids.push_back(piece.id);
  return ids;
}

T5Caption T5Tokenizer::encode(std::string_view caption) const {
  const TokenizerEntry& settings = implementation_->settings;
  const std::string text = clean_text(caption, settings.cleaning);
  const std::vector<Piece> pieces = implementation_->split(text);
  const std::size_t room = std::min(pieces.size(), static_cast<std::size_t>(settings.max_length - 1));
  T5Caption result;
  for (std::size_t i = 0; i < room; ++i) result.ids.push_back(pieces[i].id);
  if (room < pieces.size()) result.cut = unread_end(caption, text, pieces[room].begin);
  result.ids.push_back(settings.eos);
  return result;
}

std::int64_t T5Tokenizer::vocabulary() const {
  return implementation_->processor.GetPieceSize() + implementation_->settings.extra_ids;
}

}  // namespace lamplighter
