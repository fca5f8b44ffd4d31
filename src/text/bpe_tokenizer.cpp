#include "text/bpe_tokenizer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

#include "base/files.h"
#include "base/json.h"
#include "base/utf8.h"
#include "text/bpe_added_tokens.h"
#include "text/bpe_model.h"
#include "text/bpe_pretokenizer.h"

namespace lamplighter {
namespace {

constexpr int kMaxDepth = 200;

// Takes vocabulary and merges out of the file; the rest is read field by field. They use the sorted JSON
// type, because Json searches all keys for every new one, which is too slow for a vocabulary.
Json read_parts(const std::string& path, nlohmann::json& vocabulary, nlohmann::json& merges) {
  nlohmann::json file;
  try {
    file = nlohmann::json::parse(
        read_file(path, ExitCode::bundle, limits::kTokenizer), [&](int depth, auto, const auto&) {
          if (depth <= kMaxDepth) return true;
          throw Error(ExitCode::bundle, path + ": nested more than " + std::to_string(kMaxDepth) + " deep");
        });
  } catch (const nlohmann::json::exception& error) {
    throw Error(ExitCode::bundle, path + ": invalid JSON: " + shorten(error.what(), 200));
  }
  if (file.is_object() && file.contains("model") && file["model"].is_object()) {
    vocabulary = std::exchange(file["model"]["vocab"], nullptr);
    merges = std::exchange(file["model"]["merges"], nullptr);
  }
  return Json(file);
}

void expect_null(JsonReader& object, const char* key) {
  if (object.has(key) && !object.value(key).is_null()) object.reject(key, "null");
}

void expect_false(JsonReader& object, const char* key) {
  if (object.has(key) && object.boolean(key)) object.reject(key, "false");
}

// Whether the normalizer, or one in its sequence, composes texts (NFC).
bool read_normalizer(JsonReader normalizer) {
  bool composes = normalizer.choice("type", {"NFC", "Sequence"}) == "NFC";
  if (!composes) {
    for (const JsonReader& part : normalizer.objects("normalizers")) composes |= read_normalizer(part);
  }
  normalizer.finish();
  return composes;
}

bool has_composition(JsonReader& file) {
  if (!file.has("normalizer") || file.value("normalizer").is_null()) return false;
  return read_normalizer(file.object("normalizer"));
}

// Whether a piece that the vocabulary has is taken whole.
bool read_model(JsonReader model) {
  if (model.has("type")) model.choice("type", {"BPE"});
  for (const char* affix : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (model.has(affix) && model.value(affix) != Json("")) expect_null(model, affix);
  }
  if (model.has("dropout") && model.value("dropout") != 0) expect_null(model, "dropout");
  const bool whole = model.has("ignore_merges") && model.boolean("ignore_merges");
  // These fields have no effect: all 256 bytes have an id, so nothing is unknown.
  for (const char* unused : {"unk_token", "fuse_unk", "byte_fallback", "vocab", "merges"}) {
    if (model.has(unused)) model.value(unused);
  }
  model.finish();
  return whole;
}

void check_decoder(JsonReader decoder) {
  decoder.choice("type", {"ByteLevel"});
  for (const char* unused : {"add_prefix_space", "trim_offsets", "use_regex"}) {  // only for encoding
    if (decoder.has(unused)) decoder.boolean(unused);
  }
  decoder.finish();
}

}  // namespace

struct BpeTokenizer::Implementation {
  BpeModel model;
  bool composes;  // composes texts between raw added tokens
  BpePretokenizer pretokenizer;
  BpeAddedTokens raw, normalized;  // `normalized` tokens are searched after the raw ones
  std::unordered_map<std::string, std::int64_t> added;
  std::int64_t next;               // id of the next added token outside the vocabulary
  std::vector<std::string> texts;  // by id, as the file spells them; empty: no entry
  std::vector<bool> special;       // by id

  Implementation(BpeModel read_model, JsonReader& reader)
      : model(std::move(read_model)),
        composes(has_composition(reader)),
        pretokenizer(reader),
        next(model.entries()) {
    for (const auto& [text, id] : model.vocabulary()) set_text(id, text, false);
    if (reader.has("added_tokens")) {
      for (JsonReader& token : reader.objects("added_tokens")) add_token(token);
    }
  }

  void set_text(std::int64_t id, const std::string& text, bool is_special) {
    const auto position = static_cast<std::size_t>(id);
    if (position >= texts.size()) texts.resize(position + 1), special.resize(position + 1);
    texts[position] = text;
    special[position] = is_special;
  }

  void add_token(JsonReader& token) {
    const std::string text = token.text("content");
    if (text.empty()) token.reject("content", "at least one character");
    for (const char* flag : {"single_word", "lstrip", "rstrip"}) expect_false(token, flag);
    const std::int64_t id = token.integer("id");
    const std::int64_t expected = find(text).value_or(next);
    if (id != expected) {
      token.reject("id",
                   std::to_string(expected) + (find(text) ? " as in the vocabulary" : ", the next one"));
    }
    const bool is_normalized = token.boolean("normalized");
    const std::u32string found = is_normalized ? normalize(decode_utf8(text)) : decode_utf8(text);
    (is_normalized ? normalized : raw).add(found, id);
    set_text(id, encode_utf8(found), token.boolean("special"));
    added[text] = id;
    next = std::max(next, id + 1);
    token.finish();
  }

  std::u32string normalize(pattern::Text text) const {
    return composes ? splitting::compose(text) : std::u32string(text);
  }

  std::optional<std::int64_t> find(const std::string& text) const {
    const auto found = added.find(text);
    return found == added.end() ? model.find(text) : found->second;
  }
};

BpeTokenizer::BpeTokenizer(const std::string& path) {
  nlohmann::json vocabulary, merges;
  const Json file = read_parts(path, vocabulary, merges);
  JsonReader reader(file, path, ExitCode::bundle);
  for (const char* key : {"truncation", "padding"}) expect_null(reader, key);
  for (const char* unused : {"version", "post_processor"}) {
    if (reader.has(unused)) reader.value(unused);
  }
  const bool whole = read_model(reader.object("model"));
  check_decoder(reader.object("decoder"));
  implementation_ = std::make_unique<Implementation>(BpeModel(vocabulary, merges, path, whole), reader);
  reader.finish();
}

BpeTokenizer::~BpeTokenizer() = default;
BpeTokenizer::BpeTokenizer(BpeTokenizer&&) noexcept = default;
BpeTokenizer& BpeTokenizer::operator=(BpeTokenizer&&) noexcept = default;

std::vector<std::int64_t> BpeTokenizer::encode(std::string_view text) const {
  const Implementation& own = *implementation_;
  std::vector<std::int64_t> ids;
  const auto put = [&](std::int64_t id) { ids.push_back(id); };
  const auto plain = [&](pattern::Text part) {
    for (const pattern::Text piece : own.pretokenizer.split(part)) own.model.encode(encode_utf8(piece), ids);
  };
  own.raw.split(
      decode_utf8(text), [&](pattern::Text part) { own.normalized.split(own.normalize(part), plain, put); },
      put);
  return ids;
}

std::string BpeTokenizer::bytes(const std::vector<std::int64_t>& ids, bool skip_special) const {
  const Implementation& own = *implementation_;
  std::string text;
  for (const std::int64_t id : ids) {
    if (id < 0 || id >= size()) continue;
    const auto position = static_cast<std::size_t>(id);
    if (!skip_special || !own.special[position]) text += entry_bytes(own.texts[position]);
  }
  return text;
}

std::string BpeTokenizer::decode(const std::vector<std::int64_t>& ids, bool skip_special) const {
  return encode_utf8(decode_utf8(bytes(ids, skip_special)));
}

std::optional<std::int64_t> BpeTokenizer::find(const std::string& token) const {
  return implementation_->find(token);
}

std::int64_t BpeTokenizer::size() const {
  return static_cast<std::int64_t>(implementation_->texts.size());
}

}  // namespace lamplighter
