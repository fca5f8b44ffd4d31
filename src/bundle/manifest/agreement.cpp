#include "bundle/manifest/agreement.h"

#include <algorithm>

#include "bundle/draft_kinds.h"
#include "bundle/manifest/text.h"

namespace lamplighter {
namespace {

void require(JsonReader& reader, const char* key, const char* module) {
  if (!reader.has(key)) reader.fail(std::string(key) + " is missing; a bundle with " + module + " needs it");
}

std::string number(std::int64_t value) {
  return std::to_string(value);
}

void check_ids(JsonReader& reader, const std::string& where, const std::vector<std::int64_t>& ids,
               std::int64_t vocabulary) {
  for (const std::int64_t id : ids) {
    if (id < 0 || id >= vocabulary)
      reader.fail(where + ": got id " + number(id) + ", expected 0.." + number(vocabulary - 1));
  }
}

// Tokens, prompts and grids of a target.
void check_target(JsonReader& reader, const Manifest& manifest) {
  for (const char* key : {"target", "cache", "tokens", "prompt", "grids", "sampling"})
    require(reader, key, "a target");
  const auto& tokens = manifest.tokens;
  const PromptEntry& prompt = *manifest.prompt;
  if (manifest.target.head != tokens.codebook_size) {
    reader.fail("target.head " + number(manifest.target.head) + " disagrees with tokens.codebook_size " +
                number(tokens.codebook_size));
  }
  if (tokens.first_image_id + tokens.codebook_size > tokens.vocabulary) {
    reader.fail("image ids up to " + number(tokens.first_image_id + tokens.codebook_size - 1) +
                " disagree with tokens.vocabulary " + number(tokens.vocabulary));
  }
  if (manifest.tokenizer && manifest.tokenizer->max_length > prompt.length) {
    reader.fail("tokenizer.max_length " + number(manifest.tokenizer->max_length) +
                " disagrees with prompt.length " + number(prompt.length));
  }
  if (manifest.tokenizer && (manifest.tokenizer->kind == "bpe") != (prompt.kind == "tokens")) {
    reader.fail("tokenizer.kind " + manifest.tokenizer->kind + " disagrees with prompt.kind " + prompt.kind);
  }
  if (manifest.grids.empty()) reader.fail("grids: got an empty list, expected at least one grid");
  check_ids(reader, "prompt.prefix", prompt.prefix, tokens.vocabulary);
  check_ids(reader, "prompt.suffix", prompt.suffix, tokens.vocabulary);
  check_ids(reader, "prompt.unconditional", prompt.unconditional, tokens.vocabulary);
  if (prompt.unconditional_pad && prompt.negative_text)
    reader.fail("prompt: got unconditional_pad and negative_text, expected one of them");
  if (prompt.unconditional_pad)
    check_ids(reader, "prompt.unconditional_pad", {*prompt.unconditional_pad}, tokens.vocabulary);
  for (const Grid& grid : manifest.grids) {
    const std::string name = "grid " + number(grid.rows) + " x " + number(grid.columns);
    check_ids(reader, name + ".before", grid.before, tokens.vocabulary);
    check_ids(reader, name + ".row_end", grid.row_end, tokens.vocabulary);
    check_ids(reader, name + ".after", grid.after, tokens.vocabulary);
    if (grid.preview_tokens() > 0 && !grid.row_end.empty())
      reader.fail(name + ": got a preview and row_end, expected one of them");
    const std::int64_t needed = prompt.length + grid.length();
    if (needed > manifest.cache.max_length) {
      reader.fail(name + " needs " + number(needed) + " positions, cache.max_length is " +
                  number(manifest.cache.max_length));
    }
    if (prompt.kind != "tokens") {
      if (!grid.before.empty())
        reader.fail(name + ".before: got ids, expected none unless prompts are tokens");
      continue;
    }
    const std::size_t fixed = prompt.prefix.size() + prompt.suffix.size() + grid.before.size();
    if (static_cast<std::int64_t>(std::max(fixed, prompt.unconditional.size() + grid.before.size())) >
        prompt.length)
      reader.fail("prompt.length " + number(prompt.length) + " is less than the ids around a prompt of " +
                  name);
    if (prompt.unconditional.empty() && grid.before.empty() && !prompt.negative_text)
      reader.fail("prompt.unconditional: got no ids, expected some, or some before " + name);
  }
}

// What images are described with.
void check_text(JsonReader& reader, const Manifest& manifest) {
  const TextEntry& text = *manifest.text;
  if (!manifest.has("target") || manifest.is_continuous())
    reader.fail("text: got an entry, expected none without a target of codes");
  const std::vector<std::string>& methods = manifest.modules.at("target").methods;
  if (std::find(methods.begin(), methods.end(), kTextLogits) == methods.end())
    reader.fail("text: got an entry, expected text_logits among modules.target.methods");
  if (!manifest.tokenizer || manifest.tokenizer->kind != "bpe")
    reader.fail("text: got an entry, expected it beside a tokenizer of kind bpe");
  const std::int64_t vocabulary = manifest.tokens.vocabulary;
  check_ids(reader, "text.prefix", text.prefix, vocabulary);
  check_ids(reader, "text.before_image", text.before_image, vocabulary);
  check_ids(reader, "text.after_image", text.after_image, vocabulary);
  check_ids(reader, "text.suffix", text.suffix, vocabulary);
  check_ids(reader, "text.stop", text.stop, vocabulary);
  if (fixed_ids(manifest) + 1 >= text.length)
    reader.fail("text.length " + number(text.length) +
                " leaves no room for a question and an answer behind " + number(fixed_ids(manifest)) +
                " ids of an image and around it");
}

// The same for continuous tokens.
void check_continuous(JsonReader& reader, const Manifest& manifest) {
  for (const char* key : {"target", "prompt", "grids", "sampling"}) require(reader, key, "a target");
  if (manifest.prompt->kind != "class")
    reader.fail("prompt.kind: got " + manifest.prompt->kind + ", expected class for continuous tokens");
  if (manifest.grids.empty()) reader.fail("grids: got an empty list, expected at least one grid");
  for (const Grid& grid : manifest.grids) {
    if (!grid.before.empty() || !grid.row_end.empty() || !grid.after.empty())
      reader.fail("grid " + number(grid.rows) + " x " + number(grid.columns) +
                  ": got ids, expected none around continuous tokens");
    if (grid.preview_tokens() > 0)
      reader.fail("grid " + number(grid.rows) + " x " + number(grid.columns) +
                  ": got a preview, expected none in front of continuous tokens");
    if (grid.tokens() != manifest.grids.front().tokens())
      reader.fail("grid " + number(grid.rows) + " x " + number(grid.columns) + ": got " +
                  number(grid.tokens()) + " tokens, expected " + number(manifest.grids.front().tokens()) +
                  " as in the first grid: their positions are learned");
  }
  for (const char* key : {"cache", "tokenizer", "neighbours", "trees"}) {
    if (reader.has(key)) reader.fail(std::string(key) + ": got one, expected none beside continuous tokens");
  }
}

// A small target takes the prompts and the positions of the target.
void check_model(JsonReader& reader, const std::string& name, const DraftModelEntry& drafter,
                 const Manifest& manifest) {
  if (drafter.max_length < manifest.cache.max_length) {
    reader.fail(name + ".max_length " + number(drafter.max_length) + " disagrees with cache.max_length " +
                number(manifest.cache.max_length));
  }
  if (drafter.prompt_id || drafter.padding)
    reader.fail(name + ": got prompt_id or padding, expected neither for kind model: it reads the prompt");
}

// `section`: the entry of the drafters.
void check_drafters(JsonReader& reader, const Manifest& manifest, const std::string& section = "drafters") {
  if (!manifest.drafters.empty() && !manifest.has("target")) {
    reader.fail("drafters: got some without a target, expected both: a drafter reads the target's features");
  }
  for (const auto& [key, drafter] : manifest.drafters) {
    const std::string name = section + "." + key;
    const DraftKindEntry& kind = draft_kind(drafter);
    if ((kind.kind == DraftKind::continuous) != manifest.is_continuous())
      reader.fail(name + ".kind " + drafter.kind + " disagrees with tokens.kind " + manifest.tokens.kind);
    if (!kind.has(kDraftCache)) continue;
    if (kind.is_target()) {
      check_model(reader, name, drafter, manifest);
      continue;
    }
    if (drafter.max_length < manifest.cache.max_length - 1) {
      reader.fail(name + ".max_length " + number(drafter.max_length) + " disagrees with cache.max_length " +
                  number(manifest.cache.max_length));
    }
    if (kind.has(kFeatureLayers) && drafter.feature_layers.empty())
      reader.fail(name + ".feature_layers: got none, expected at least one layer of the target");
    for (std::size_t i = 0; i < drafter.feature_layers.size(); ++i) {
      const std::int64_t layer = drafter.feature_layers[i];
      if (layer < 0 || layer >= manifest.cache.layers || (i > 0 && layer <= drafter.feature_layers[i - 1]))
        reader.fail(name + ".feature_layers: got " + number(layer) +
                    ", expected ascending layers of the target below " + number(manifest.cache.layers));
    }
    if (drafter.prompt_id) {
      check_ids(reader, name + ".prompt_id", {*drafter.prompt_id}, manifest.tokens.vocabulary);
    } else if (manifest.prompt->kind != "tokens") {
      reader.fail(name + ".prompt_id is missing; prompts of kind " + manifest.prompt->kind +
                  " have no ids of their own");
    }
    if (drafter.padding && (manifest.prompt->kind != "text_features" || manifest.prompt->align != "end")) {
      reader.fail(name + ".padding: got true, expected it for text_features aligned at end only");
    }
  }
}

// Drafters of answers. `name` stands for one network in golden records.
void check_text_drafters(JsonReader& reader, const Manifest& manifest) {
  for (const auto& [name, drafter] : manifest.text->drafters) {
    if (manifest.drafters.count(name) != 0)
      reader.fail("text.drafters: got " + name + ", expected a name that no drafter of images has");
    if (!draft_kind(drafter).has(kDraftTexts))
      reader.fail("text.drafters." + name + ".kind: got " + drafter.kind + ", expected eagle or flash");
  }
  check_drafters(reader, text_manifest(manifest, 1), "text.drafters");
}

[[noreturn]] void fail_grid(JsonReader& reader, std::size_t index, const Grid& grid, const std::string& why) {
  reader.fail("grids[" + std::to_string(index) + "] of " + number(grid.rows) + " x " + number(grid.columns) +
              " tokens disagrees with " + number(grid.width) + " x " + number(grid.height) + " pixels" + why);
}

// Where no image decoder says how many pixels a token has.
void check_squares(JsonReader& reader, const Manifest& manifest) {
  for (std::size_t i = 0; i < manifest.grids.size(); ++i) {
    const Grid& grid = manifest.grids[i];
    if (grid.width % grid.columns != 0 || grid.width / grid.columns * grid.rows != grid.height)
      fail_grid(reader, i, grid, ", expected tokens that are squares of pixels");
  }
}

void check_decoder(JsonReader& reader, const Manifest& manifest) {
  require(reader, "decoder", "an image decoder");
  if (manifest.has("target") && manifest.decoder.codebook_size != manifest.tokens.codebook_size) {
    reader.fail("decoder.codebook_size " + number(manifest.decoder.codebook_size) +
                " disagrees with tokens.codebook_size " + number(manifest.tokens.codebook_size));
  }
  for (std::size_t i = 0; i < manifest.grids.size(); ++i) {
    const Grid& grid = manifest.grids[i];
    const std::int64_t factor = manifest.decoder.downsample;
    if (grid.preview_tokens() > 0)
      reader.fail("grids[" + number(static_cast<std::int64_t>(i)) +
                  "].preview: got one, expected none beside an image decoder");
    if (grid.width != grid.columns * factor || grid.height != grid.rows * factor)
      fail_grid(reader, i, grid, " at decoder.downsample " + number(factor));
  }
}

}  // namespace

void check_agreement(JsonReader& reader, const Manifest& manifest) {
  if (manifest.has("target"))
    manifest.is_continuous() ? check_continuous(reader, manifest) : check_target(reader, manifest);
  if (manifest.text) check_text(reader, manifest);
  check_drafters(reader, manifest);
  if (manifest.text) check_text_drafters(reader, manifest);
  manifest.has("image_decoder") ? check_decoder(reader, manifest) : check_squares(reader, manifest);
  if (manifest.has("image_encoder")) require(reader, "decoder", "an image encoder");
}

}  // namespace lamplighter
