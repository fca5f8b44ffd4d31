#include "pipeline/caption_notes.h"

#include "base/message.h"
#include "base/utf8.h"
#include "text/vocabulary.h"

namespace lamplighter {
namespace {

// What the bundle does not know of a caption; empty when it knows all.
std::string describe(const Manifest& manifest, const Understanding& caption) {
  if (caption.whole()) return "";
  std::string words;
  for (const std::string& word : caption.unknown) words += (words.empty() ? "" : ", ") + word;
  const std::string unknown = words.empty() ? "" : "does not know: " + shorten(words, 200);
  const std::string subject = caption.subject ? "" : "finds no subject that it can generate";
  return manifest.name + " " + subject + (subject.empty() || unknown.empty() ? "" : ", and ") + unknown +
         "; try \"" + manifest.prompt->vocabulary->example + "\", `lamplighter inspect` lists what it knows";
}

}  // namespace

std::vector<std::string> caption_notes(const Manifest& manifest, const Request& request,
                                       const PromptIds& prompt) {
  std::vector<std::string> lines;
  if (manifest.prompt->vocabulary) {
    const std::string line =
        describe(manifest, Vocabulary(*manifest.prompt->vocabulary).read(request.prompt));
    if (!line.empty()) lines.push_back(line);
  }
  if (!prompt.cut.empty()) {
    lines.push_back("the caption is longer than the " + std::to_string(manifest.tokenizer->max_length) +
                    " tokens that " + manifest.name + " reads: reading stops at " + quote(prompt.cut));
  }
  return lines;
}

std::vector<std::string> caption_notes(const Manifest& manifest, const Request& request,
                                       const std::string& cut) {
  if (!manifest.prompt || request.class_id) return {};
  PromptIds prompt;
  prompt.cut = cut;
  return caption_notes(manifest, request, prompt);
}

}  // namespace lamplighter
