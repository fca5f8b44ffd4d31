#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "bundle/modules/draft_model.h"
#include "bundle/modules/target.h"
#include "lamplighter/pipeline.h"
#include "text/bpe_tokenizer.h"

// Texts about images, by the decode loop of images.
namespace lamplighter {

// Throws Error(ExitCode::bundle) where the bundle describes no images, Error(ExitCode::usage) and
// Error(ExitCode::input) for values out of range. Needs no weights.
void check_description(const Manifest& manifest, const DescribeRequest& request);

// A request with all that its answer is sampled with.
struct Question {
  std::vector<std::int64_t> before, after;  // ids in front of the image's codes and behind them
  Manifest text;                            // text_manifest(), for the most tokens of the answer
  SamplingOptions sampling;
  std::uint64_t seed = 0;
  MethodOptions method;  // complete

  std::int64_t most() const { return text.grids.front().tokens(); }
};

class Describer {
 public:
  // Reads the tokenizer. The manifest has a TextEntry; all of it outlives the describer. Throws
  // Error(ExitCode::bundle).
  Describer(const Manifest& manifest, const Placement& placement, const RuntimeOptions& options);

  // Throws Error(ExitCode::input) for a question that is too long, Error(ExitCode::usage) for an answer that
  // is, and for methods that are lossy or need a drafter of texts that the bundle lacks.
  Question resolve(const DescribeRequest& request, const MethodOptions& method) const;

  // `codes`: of an image with the sides of the first grid.
  Description answer(const Question& question, const Codes& codes, const Target& target,
                     const TextCallback& on_text);

 private:
  MethodOptions resolve_text_method(const MethodOptions& method, const Manifest& text) const;
  std::int64_t room_for(const DescribeRequest& request, std::int64_t prompt) const;
  // The drafter that its method calls, loaded when it is first named; null: none.
  const DraftModel* drafter_of(const Question& question);

  const Manifest& manifest_;
  const Placement& placement_;
  const RuntimeOptions& options_;
  BpeTokenizer bpe_;
  std::map<std::string, DraftModel> drafters_;
};

}  // namespace lamplighter
