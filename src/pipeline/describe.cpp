#include "pipeline/describe.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "acceptance/rules.h"
#include "base/files.h"
#include "base/format.h"
#include "base/message.h"
#include "base/stopwatch.h"
#include "base/suggestion.h"
#include "base/utf8.h"
#include "bundle/draft_kinds.h"
#include "bundle/manifest/text.h"
#include "decode/decode.h"
#include "decode/prompt_tokenizer.h"
#include "decode/prompts.h"
#include "decode/recorder.h"
#include "device/machine.h"
#include "device/placement.h"
#include "draft/auto.h"
#include "draft/registry.h"
#include "lamplighter/error.h"
#include "pipeline/pixel_encoder.h"
#include "pipeline/resolved_request.h"
#include "text/cleaning.h"

namespace lamplighter {
namespace {

constexpr std::int64_t kUsualTokens = 256;  // of an answer

SamplingOptions text_sampling(const Manifest& manifest, const DescribeRequest& request) {
  SamplingOptions sampling = manifest.text->sampling;
  sampling.temperature = request.temperature.value_or(sampling.temperature);
  sampling.top_k = request.top_k.value_or(sampling.top_k);
  sampling.top_p = request.top_p.value_or(sampling.top_p);
  return sampling;
}

bool suits_texts(const MethodEntry& method) {
  return !method.is_row_parallel() && !method.is_continuous() && !traits_of(method.rule).lossy() &&
         (!method.needs_drafter() || draft_kind(*method.drafter).has(kDraftTexts));
}

// Whether the bundle has a drafter of texts that the method needs.
bool has_drafter(const MethodEntry& method, const TextEntry& text) {
  return !method.needs_drafter() ||
         std::any_of(text.drafters.begin(), text.drafters.end(),
                     [&](const auto& drafter) { return draft_kind(drafter.second).kind == method.drafter; });
}

std::string with_prompt(std::string text, const std::string& prompt) {
  constexpr const char* kPlace = "{prompt}";
  const std::size_t at = text.find(kPlace);
  return at == std::string::npos ? text : text.replace(at, std::string(kPlace).size(), prompt);
}

// An answer as it grows: ids until one of them ends it, and its text in whole characters.
class Answer {
 public:
  Answer(const BpeTokenizer& bpe, const std::vector<std::int64_t>& stop) : bpe_(bpe), stop_(stop) {}

  // Takes the tokens so far; returns the text that is new.
  std::string grow(const std::vector<std::int32_t>& tokens) {
    std::vector<std::int64_t> more;
    for (std::size_t i = ids.size(); i < tokens.size() && !is_ended; ++i) {
      is_ended = std::find(stop_.begin(), stop_.end(), tokens[i]) != stop_.end();
      if (!is_ended) more.push_back(tokens[i]);
    }
    ids.insert(ids.end(), more.begin(), more.end());
    bytes_ += bpe_.bytes(more, true);
    return take(count_whole_utf8(bytes_));
  }
  // What is left: the begin of a character.
  std::string rest() { return take(bytes_.size()); }

  std::vector<std::int64_t> ids;
  std::string text;
  bool is_ended = false;

 private:
  std::string take(std::size_t count) {
    std::string more = encode_utf8(decode_utf8(std::string_view(bytes_).substr(0, count)));
    bytes_.erase(0, count);
    text += more;
    return more;
  }

  const BpeTokenizer& bpe_;
  const std::vector<std::int64_t>& stop_;
  std::string bytes_;
};

}  // namespace

void check_description(const Manifest& manifest, const DescribeRequest& request) {
  require_text(manifest);
  require_encoder(manifest);
  check_ranges(text_sampling(manifest, request));
  check_caption(request.prompt, "prompt");
  if (request.max_tokens && *request.max_tokens < 1)
    throw Error(ExitCode::usage,
                "max_tokens: got " + std::to_string(*request.max_tokens) + ", expected 1 or more");
}

Describer::Describer(const Manifest& manifest, const Placement& placement, const RuntimeOptions& options)
    : manifest_(manifest),
      placement_(placement),
      options_(options),
      bpe_(join_path(manifest.directory, manifest.tokenizer->file)) {}

MethodOptions Describer::resolve_text_method(const MethodOptions& method, const Manifest& text) const {
  const auto refuse = [&](const std::string& got, const std::string& why) {
    std::vector<std::string> known;
    for (const MethodEntry& entry : methods()) {
      if (suits_texts(entry) && has_drafter(entry, *manifest_.text)) known.emplace_back(entry.name);
    }
    throw Error(ExitCode::usage, "method: got " + got + ", expected for texts " + list_of(known) + why);
  };
  constexpr const char* kLossless = ": lossless, and with no drafter but one of texts";
  if (is_auto(method)) refuse(quote(method.method), kLossless);
  const MethodEntry& entry = find_method(method.method);
  if (!suits_texts(entry)) refuse(quote(method.method), kLossless);
  if (!has_drafter(entry, *manifest_.text)) {
    const DraftKindEntry& kind = draft_kind(*entry.drafter);
    refuse(quote(method.method), std::string(": text.drafters has none of kind ") + kind.name +
                                     "; add one with lamplighter-export " + kind.exporter + " --text");
  }
  MethodOptions resolved = resolve_method(method, text, placement_.device.is_cpu() ? "cpu" : "cuda");
  if (!is_lossless(resolved)) refuse(quote(method.method) + " with rule " + quote(resolved.rule), kLossless);
  return resolved;
}

std::int64_t Describer::room_for(const DescribeRequest& request, std::int64_t prompt) const {
  const std::int64_t length = manifest_.text->length, room = length - prompt;
  if (room < 1) {
    const std::int64_t question = prompt - fixed_ids(manifest_);
    throw Error(ExitCode::input, "prompt: got " + counted(question, "token") + ", expected at most " +
                                     std::to_string(question + room - 1) + " beside the image's; shorten it");
  }
  const std::int64_t most = request.max_tokens.value_or(std::min(kUsualTokens, room));
  if (most > room)
    throw Error(ExitCode::usage, "max_tokens: got " + std::to_string(most) + ", expected 1 to " +
                                     std::to_string(room) + ": the prompt takes " + std::to_string(prompt) +
                                     " of the bundle's " + std::to_string(length) + " positions");
  return most;
}

Question Describer::resolve(const DescribeRequest& request, const MethodOptions& method) const {
  const TextEntry& entry = *manifest_.text;
  Question question;
  const auto append = [](std::vector<std::int64_t>& ids, const std::vector<std::int64_t>& more) {
    ids.insert(ids.end(), more.begin(), more.end());
  };
  const auto add = [&](std::vector<std::int64_t>& ids, const std::string& text) {
    append(ids, encode_embedded(bpe_, with_prompt(text, request.prompt), manifest_.tokens.vocabulary));
  };
  constexpr std::string_view kImage = "{image}";
  const std::size_t at = entry.text.find(kImage);
  question.before = entry.prefix;
  add(question.before, entry.text.substr(0, at));
  append(question.before, entry.before_image);
  question.after = entry.after_image;
  add(question.after, entry.text.substr(at + kImage.size()));
  append(question.after, entry.suffix);
  const auto ids = static_cast<std::int64_t>(question.before.size() + question.after.size());
  question.text = text_manifest(manifest_, room_for(request, ids + manifest_.grids.front().tokens()));
  question.sampling = text_sampling(manifest_, request);
  question.seed = request.seed;
  question.method = resolve_text_method(method, question.text);
  return question;
}

const DraftModel* Describer::drafter_of(const Question& question) {
  const std::string& name = question.method.drafter;
  if (name.empty()) return nullptr;
  const auto known = drafters_.find(name);
  if (known != drafters_.end()) return &known->second;
  const DraftModel drafter = DraftModel(question.text, name, placement_).for_text(manifest_);
  return &drafters_.emplace(name, drafter).first->second;
}

Description Describer::answer(const Question& question, const Codes& codes, const Target& target,
                              const TextCallback& on_text) {
  const Target text = target.for_text(question.text);
  const Models models{&text, drafter_of(question)};
  const Method method =
      make_method(question.method, question.text, placement_.device, question.sampling.temperature <= 0);
  Condition prompt;
  prompt.ids = question.before;
  for (const std::int32_t code : codes.ids) prompt.ids.push_back(manifest_.tokens.first_image_id + code);
  prompt.ids.insert(prompt.ids.end(), question.after.begin(), question.after.end());

  RunShape shape;
  shape.grid = &question.text.grids.front();
  shape.prompt_length = static_cast<std::int64_t>(prompt.ids.size());
  shape.graph = options_.graph;
  shape.note = options_.note;
  const std::int64_t drafted = cache_numbers(question.method, question.text) *
                               static_cast<std::int64_t>(c10::elementSize(placement_.dtype));
  require_memory(placement_.device, row_bytes(manifest_.cache, placement_) + drafted,
                 shape.prompt_length + question.most(), "the cache of a text");
  Stopwatch watch;
  DecodeRun run(models, method, shape);
  PendingImages pending{embed_prompts(models, {prompt}, false), {{question.sampling, question.seed}}};
  Recorder recorder(method);
  Answer answer(bpe_, manifest_.text->stop);
  while (!answer.is_ended && static_cast<std::int64_t>(answer.ids.size()) < question.most()) {
    const std::optional<Report> report = run.step(std::exchange(pending, {}));
    if (!report) continue;
    if (report->images.front().bad_target) throw bad_target();
    recorder.add(*report);
    const std::string more = answer.grow(recorder.of(0).known());
    if (on_text && !on_text(more)) throw Error(ExitCode::interrupted, "stopped");
  }
  const std::string rest = answer.rest();
  if (on_text && !rest.empty() && !on_text(rest)) throw Error(ExitCode::interrupted, "stopped");
  Description description{std::move(answer.text),     std::move(answer.ids), !answer.is_ended,
                          shape.prompt_length,        question.sampling,     question.method,
                          recorder.take(0).statistics};
  description.statistics.decode_ms = watch.lap() - description.statistics.prefill_ms;
  return description;
}

}  // namespace lamplighter
