#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lamplighter/bundle.h"
#include "lamplighter/options.h"
#include "text/bpe_tokenizer.h"
#include "text/code_list.h"
#include "text/t5_tokenizer.h"

namespace lamplighter {

// One prompt as ids of the text encoder, of the class, or of the target itself.
struct PromptIds {
  std::vector<std::int64_t> ids;
  std::vector<std::int64_t> unconditional =
      {};                // prompts of tokens: without the caption, or the negative prompt
  std::string cut = {};  // the end of the caption that the bundle does not read, see unread_end

  // Cache slots that the longer half of the prompt takes.
  std::int64_t length() const {
    return static_cast<std::int64_t>(std::max(ids.size(), unconditional.size()));
  }
};

// The ids of a text, which the target embeds: it has `vocabulary` of them. Throws Error(ExitCode::bundle) for
// a tokenizer of another model.
std::vector<std::int64_t> encode_embedded(const BpeTokenizer& bpe, const std::string& text,
                                          std::int64_t vocabulary);

// Turns requests into ids with the tokenizer of the bundle. Needs no weights.
class PromptTokenizer {
 public:
  // Throws Error(ExitCode::bundle).
  explicit PromptTokenizer(const Manifest& manifest);
  // Throws Error(ExitCode::input) when the prompt has more tokens than the bundle takes, and
  // Error(ExitCode::bundle) for a tokenizer of another model.
  PromptIds encode(const Request& request, const Grid& grid) const;

 private:
  // A caption in its template, at byte `begin`. Templates for an empty caption have no place for it.
  struct Filled {
    std::string text, caption;
    std::size_t begin = std::string::npos;
  };
  static Filled fill(std::string text, const std::string& caption, const Grid& grid);
  Filled prompt_text(const Request& request, const Grid& grid) const;
  // Ids of a text that the target embeds.
  std::vector<std::int64_t> encode_text(const std::string& text) const;
  // Throws Error(ExitCode::input) when a half of the guided pair is longer than the bundle takes. `ids`: of
  // the text in it, `half`: the number of all its ids.
  void check_length(const char* name, const Filled& text, const std::vector<std::int64_t>& ids,
                    std::size_t half) const;
  // The end of a caption, whose last tokens are `excess` too many. Empty where that is not known.
  std::string excess_words(const Filled& text, const std::vector<std::int64_t>& ids,
                           std::size_t excess) const;
  PromptIds encode_tokens(const Request& request, const Grid& grid) const;

  PromptEntry prompt_;
  std::int64_t vocabulary_ = 0;  // ids that the target embeds
  std::int64_t max_length_ = 0;  // ids of a text
  std::unique_ptr<T5Tokenizer> t5_;
  std::unique_ptr<BpeTokenizer> bpe_;
  std::unique_ptr<CodeLists> codes_;
};

}  // namespace lamplighter
