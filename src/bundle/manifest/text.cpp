#include "bundle/manifest/text.h"

#include "bundle/manifest/sections.h"
#include "lamplighter/error.h"

namespace lamplighter {

void read_text(JsonReader reader, Manifest& manifest) {
  TextEntry text;
  text.text = reader.text("text");
  for (const char* place : {"{prompt}", "{image}"}) {
    if (text.text.find(place) == std::string::npos) reader.reject("text", "a text with {prompt} and {image}");
  }
  text.prefix = reader.integers("prefix");
  text.before_image = reader.integers("before_image");
  text.after_image = reader.integers("after_image");
  text.suffix = reader.integers("suffix");
  text.stop = reader.integers("stop");
  text.length = reader.integer("length", 1, kMaxSize);
  JsonReader sampling = reader.object("sampling");
  read_filters(sampling, text.sampling);
  sampling.finish();
  read_drafters(reader, manifest, text.drafters, text.first_drafter);
  reader.finish();
  manifest.text = std::move(text);
}

std::int64_t fixed_ids(const Manifest& manifest) {
  const TextEntry& text = *manifest.text;
  const std::size_t around =
      text.prefix.size() + text.before_image.size() + text.after_image.size() + text.suffix.size();
  return static_cast<std::int64_t>(around) + manifest.grids.front().tokens();
}

Manifest text_manifest(const Manifest& manifest, std::int64_t most) {
  const TextEntry& text = *manifest.text;
  Manifest view = manifest;
  view.tokens.first_image_id = 0;
  view.tokens.codebook_size = view.target.head = manifest.tokens.vocabulary;
  view.prompt = PromptEntry{};
  view.prompt->kind = "tokens";
  view.prompt->align = "start";
  view.prompt->length = text.length - most;
  Grid row;
  row.width = row.columns = static_cast<int>(most);
  row.height = row.rows = 1;
  view.grids = {row};
  view.sampling = text.sampling;
  view.sampling_order = "ar";
  view.schedule = {};
  view.cache.max_length = text.length;
  view.drafters = text.drafters;
  view.first_drafter = text.first_drafter;
  view.trees.clear();
  view.neighbours.reset();
  return view;
}

void require_text(const Manifest& manifest) {
  if (manifest.text) return;
  throw Error(ExitCode::bundle, "bundle " + manifest.directory +
                                    " cannot describe images: it lacks text; export a Chameleon or Anole "
                                    "checkpoint again, with --text");
}

}  // namespace lamplighter
