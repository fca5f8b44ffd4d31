#include <string>
#include <vector>

#include "bundle/manifest/sections.h"

namespace lamplighter {
namespace {

// Whether logits stay finite when they are multiplied by a number.
bool is_factor(double value) {
  return value >= 0 && value <= 1e6;
}

VocabularyEntry read_vocabulary(JsonReader reader) {
  VocabularyEntry vocabulary;
  for (auto& [kind, values] : reader.members("kinds")) {
    vocabulary.kinds.push_back({kind, {}});
    for (const std::string& value : values.keys())
      vocabulary.kinds.back().values.push_back({value, values.texts(value)});
    values.finish();
  }
  std::vector<std::string> kinds;
  for (const VocabularyEntry::Kind& kind : vocabulary.kinds) kinds.push_back(kind.name);
  vocabulary.subject = reader.choice("subject", kinds);
  vocabulary.other = reader.texts("other");
  vocabulary.example = reader.text("example");
  reader.finish();
  return vocabulary;
}

PromptEntry read_prompt(JsonReader reader) {
  PromptEntry prompt;
  prompt.kind = reader.choice("kind", {"text_features", "class", "tokens"});
  prompt.length = reader.integer("length", 1, kMaxSize);
  prompt.align = reader.choice("align", {"start", "end"});
  if (prompt.kind == "text_features") prompt.features = reader.integer("features", 1);
  if (prompt.kind == "class") prompt.classes = reader.integer("classes", 1);
  if (prompt.kind == "tokens") {
    prompt.text = reader.text("text");
    if (prompt.text.find("{prompt}") == std::string::npos) reader.reject("text", "a text with {prompt}");
    prompt.prefix = reader.integers("prefix");
    prompt.suffix = reader.integers("suffix");
    prompt.unconditional = reader.integers("unconditional");
    if (reader.has("strip")) prompt.strip = reader.boolean("strip");
    if (reader.has("empty_text")) prompt.empty_text = reader.text("empty_text");
    if (reader.has("negative_text")) {
      prompt.negative_text = reader.text("negative_text");
      if (prompt.negative_text->find("{prompt}") == std::string::npos)
        reader.reject("negative_text", "a text with {prompt}");
      prompt.negative_prompt = reader.text("negative_prompt");
    }
    if (reader.has("unconditional_pad"))
      prompt.unconditional_pad = reader.integer("unconditional_pad", 0, kMaxIds);
  }
  if (reader.has("vocabulary")) prompt.vocabulary = read_vocabulary(reader.object("vocabulary"));
  reader.finish();
  return prompt;
}

Grid read_grid(JsonReader& reader) {
  Grid grid;
  const std::int64_t most = 1 << 16;
  grid.width = static_cast<int>(reader.integer("width", 1, most));
  grid.height = static_cast<int>(reader.integer("height", 1, most));
  grid.rows = static_cast<int>(reader.integer("rows", 1, most));
  grid.columns = static_cast<int>(reader.integer("columns", 1, most));
  if (reader.has("before")) grid.before = reader.integers("before");
  if (reader.has("row_end")) grid.row_end = reader.integers("row_end");
  if (grid.row_end.size() > 1) reader.reject("row_end", "one id or none");
  if (reader.has("after")) grid.after = reader.integers("after");
  if (reader.has("preview")) {
    JsonReader preview = reader.object("preview");
    grid.preview_rows = static_cast<int>(preview.integer("rows", 1, most));
    grid.preview_columns = static_cast<int>(preview.integer("columns", 1, most));
    preview.finish();
  }
  reader.finish();
  return grid;
}

GuidanceSchedule read_schedule(JsonReader reader) {
  GuidanceSchedule schedule;
  schedule.kind = reader.choice("kind", {"constant", "linear", "decay"});
  if (schedule.kind == "decay") {
    schedule.floor = reader.number("floor");
    if (reader.has("share")) schedule.share = reader.number("share");
    if (reader.has("raise")) schedule.raise = reader.boolean("raise");
    if (schedule.floor < 1 || !is_factor(schedule.floor)) reader.reject("floor", "a number of 1 to 1000000");
    if (schedule.share <= 0 || !is_factor(schedule.share))
      reader.reject("share", "a number above 0, at most 1000000");
  }
  reader.finish();
  return schedule;
}

void read_sampling(JsonReader reader, Manifest& manifest) {
  SamplingOptions& sampling = manifest.sampling;
  if (reader.has("cfg_scale")) sampling.cfg_scale = reader.fp32("cfg_scale");
  read_filters(reader, sampling);
  if (reader.has("order")) manifest.sampling_order = reader.choice("order", {"ar", "eagle"});
  if (reader.has("schedule")) manifest.schedule = read_schedule(reader.object("schedule"));
  if (!is_factor(sampling.cfg_scale)) reader.reject("cfg_scale", "a number of 0 to 1000000");
  reader.finish();
}

}  // namespace

void read_filters(JsonReader& reader, SamplingOptions& sampling) {
  if (reader.has("temperature")) sampling.temperature = reader.fp32("temperature");
  if (reader.has("top_k")) sampling.top_k = reader.integer("top_k", 0);
  if (reader.has("top_p")) sampling.top_p = reader.fp32("top_p");
  if (!is_factor(sampling.temperature)) reader.reject("temperature", "a number of 0 to 1000000");
  if (sampling.top_p <= 0 || sampling.top_p > 1) reader.reject("top_p", "a number in (0, 1]");
}

void read_generating(JsonReader& reader, Manifest& manifest) {
  if (reader.has("prompt")) manifest.prompt = read_prompt(reader.object("prompt"));
  if (reader.has("grids")) {
    for (JsonReader& grid : reader.objects("grids")) manifest.grids.push_back(read_grid(grid));
  }
  if (reader.has("sampling")) read_sampling(reader.object("sampling"), manifest);
  if (reader.has("text")) read_text(reader.object("text"), manifest);
}

}  // namespace lamplighter
