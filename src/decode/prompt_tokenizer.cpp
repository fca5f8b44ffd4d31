#include "decode/prompt_tokenizer.h"

#include <utility>

#include "base/files.h"
#include "base/utf8.h"
#include "lamplighter/error.h"
#include "text/unicode.h"

namespace lamplighter {
namespace {

void replace_all(std::string& text, const std::string& name, const std::string& value) {
  for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + value.size()))
    text.replace(at, name.size(), value);
}

void append(std::vector<std::int64_t>& ids, const std::vector<std::int64_t>& more) {
  ids.insert(ids.end(), more.begin(), more.end());
}

}  // namespace

PromptTokenizer::PromptTokenizer(const Manifest& manifest)
    : prompt_(*manifest.prompt), vocabulary_(manifest.tokens.vocabulary) {
  if (prompt_.kind == "class") return;
  const std::string tokenizer = join_path(manifest.directory, manifest.tokenizer->file);
  max_length_ = manifest.tokenizer->max_length;
  if (prompt_.kind == "tokens") {
    bpe_ = std::make_unique<BpeTokenizer>(tokenizer);
  } else {
    t5_ = std::make_unique<T5Tokenizer>(tokenizer, *manifest.tokenizer);
  }
}

PromptIds PromptTokenizer::encode(const Request& request, const Grid& grid) const {
  if (bpe_) return encode_tokens(request, grid);
  if (t5_) {
    T5Caption caption = t5_->encode(request.prompt);
    return {std::move(caption.ids), {}, std::move(caption.cut)};
  }
  return {{*request.class_id}};
}

std::string PromptTokenizer::prompt_text(const Request& request, const Grid& grid) const {
  const std::string caption =
      prompt_.strip ? encode_utf8(strip(decode_utf8(request.prompt))) : request.prompt;
  std::string text = caption.empty() ? prompt_.empty_text.value_or(prompt_.text) : prompt_.text;
  replace_all(text, "{width}", std::to_string(grid.width));
  replace_all(text, "{height}", std::to_string(grid.height));
  replace_all(text, "{prompt}", caption);  // last: a caption may have braces of its own
  return text;
}

std::vector<std::int64_t> PromptTokenizer::encode_text(const std::string& text) const {
  std::vector<std::int64_t> encoded = bpe_->encode(text);
  for (const std::int64_t id : encoded) {
    if (id >= vocabulary_)
      throw Error(ExitCode::bundle, "tokenizer: gives id " + std::to_string(id) + ", the target embeds 0.." +
                                        std::to_string(vocabulary_ - 1) +
                                        "; it belongs to another model, export the bundle again");
  }
  return encoded;
}

void PromptTokenizer::check_length(const char* name, std::size_t text, std::size_t half) const {
  const auto ids = static_cast<std::int64_t>(text), all = static_cast<std::int64_t>(half);
  const std::int64_t most = std::min(max_length_, prompt_.length - (all - ids));
  if (ids > most) {
    throw Error(ExitCode::input, std::string(name) + ": got " + std::to_string(ids) +
                                     " tokens, expected at most " + std::to_string(most) + "; shorten it");
  }
}

PromptIds PromptTokenizer::encode_tokens(const Request& request, const Grid& grid) const {
  const std::vector<std::int64_t> encoded = encode_text(prompt_text(request, grid));
  PromptIds prompt{prompt_.prefix, prompt_.unconditional};
  append(prompt.ids, encoded);
  append(prompt.ids, prompt_.suffix);
  append(prompt.ids, grid.before);
  check_length("prompt", encoded.size(), prompt.ids.size());
  std::vector<std::int64_t> negative;
  if (prompt_.unconditional_pad) {
    prompt.unconditional.insert(prompt.unconditional.end(), encoded.size(), *prompt_.unconditional_pad);
    append(prompt.unconditional, prompt_.suffix);
  } else if (prompt_.negative_text) {
    std::string text = *prompt_.negative_text;
    replace_all(text, "{prompt}", request.negative_prompt.value_or(prompt_.negative_prompt));
    negative = encode_text(text);
    append(prompt.unconditional, negative);
  }
  append(prompt.unconditional, grid.before);
  check_length("negative_prompt", negative.size(), prompt.unconditional.size());
  return prompt;
}

}  // namespace lamplighter
