#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "base/files.h"
#include "base/json.h"
#include "bundle/manifest/agreement.h"
#include "lamplighter/bundle.h"

namespace lamplighter {
namespace {

constexpr int kSchemaVersion = 1;
constexpr std::int64_t kMaxIds = std::int64_t{1} << 31;   // vocabularies
constexpr std::int64_t kMaxSize = std::int64_t{1} << 20;  // widths, lengths, counts of layers and heads
constexpr std::int64_t kMaxChannels = 1 << 10, kMaxSteps = 1000;  // of continuous tokens
const std::vector<std::string> kStorage = {"float32", "bfloat16", "float16", "int8", "int4"};

// A name that stays inside the bundle: archives execute, so nothing outside is ever loaded.
std::string file_name(JsonReader& reader, const std::string& key, const Manifest& manifest) {
  const std::string name = reader.text(key);
  const bool plain = !name.empty() && name[0] != '/' && name.find("..") == std::string::npos;
  if (!plain) reader.reject(key, "the name of a file inside the bundle");
  if (manifest.files.count(name) == 0) reader.reject(key, "a file that \"files\" lists");
  return name;
}

ModuleEntry read_module(JsonReader reader, const Manifest& manifest) {
  ModuleEntry entry;
  entry.file = file_name(reader, "file", manifest);
  entry.dtype = reader.choice("dtype", kStorage);
  if (reader.has("methods")) entry.methods = reader.texts("methods");
  reader.finish();
  return entry;
}

DrafterEntry read_drafter(JsonReader reader, const Manifest& manifest) {
  DrafterEntry entry;
  entry.module.file = file_name(reader, "file", manifest);
  entry.module.dtype = reader.choice("dtype", kStorage);
  if (reader.has("kind")) entry.kind = reader.text("kind");
  if (entry.is_continuous()) {
    reader.finish();
    return entry;
  }
  if (entry.is_heads() || entry.kind == "flash") entry.heads = reader.integer("heads", 1, kMaxSize);
  if (entry.is_heads()) {
    reader.finish();
    return entry;
  }
  entry.layers = reader.integer("layers", 1, kMaxSize);
  entry.kv_heads = reader.integer("kv_heads", 1, kMaxSize);
  entry.head_dim = reader.integer("head_dim", 2, kMaxSize);
  if (entry.kind == "eagle-3") entry.feature_layers = reader.integers("feature_layers");
  if (entry.kind == "flash" && reader.has("queries")) {
    entry.queries = reader.integer("queries", 1, kMaxSize);
    entry.window = reader.integer("window", 1, kMaxSize);
  }
  if (reader.has("prompt_id")) entry.prompt_id = reader.integer("prompt_id", 0, kMaxIds);
  if (reader.has("padding")) entry.padding = reader.boolean("padding");
  entry.max_length = reader.integer("max_length", 1, kMaxSize);
  reader.finish();
  return entry;
}

TokenizerEntry read_tokenizer(JsonReader reader, const Manifest& manifest) {
  TokenizerEntry entry;
  entry.kind = reader.choice("kind", {"t5", "bpe"});
  entry.file = file_name(reader, "file", manifest);
  entry.max_length = reader.integer("max_length", 1, kMaxSize);
  if (entry.kind == "t5") {
    entry.pad = reader.integer("pad", 0);
    entry.eos = reader.integer("eos", 0);
    entry.unk = reader.integer("unk", 0);
    entry.extra_ids = reader.integer("extra_ids", 0, kMaxSize);
    entry.cleaning = reader.choice("cleaning", {"llamagen", "lower", "none"});
  }
  reader.finish();
  return entry;
}

void read_golden(JsonReader reader, Manifest& manifest) {
  manifest.golden = file_name(reader, "file", manifest);
  for (JsonReader& item : reader.objects("records")) {
    GoldenRecord record;
    record.module = item.text("module");
    record.method = item.text("method");
    record.inputs = item.texts("inputs");
    record.outputs = item.texts("outputs");
    if (item.has("mutated")) record.mutated = item.texts("mutated");
    record.tolerance = item.number("tolerance");
    if (item.has("distance")) record.distance = item.number("distance");
    if (!record.mutated.empty() && record.inputs.empty()) item.reject("inputs", "the tensor that is mutated");
    if (record.distance < 0) item.reject("distance", "a number of at least 0");
    if (record.tolerance <= 0) item.reject("tolerance", "a number above 0");
    item.finish();
    manifest.golden_records.push_back(std::move(record));
  }
  reader.finish();
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
    if (schedule.floor < 1) reader.reject("floor", "1 or more");
    if (schedule.share <= 0) reader.reject("share", "more than 0");
  }
  reader.finish();
  return schedule;
}

void read_sampling(JsonReader reader, Manifest& manifest) {
  SamplingOptions& sampling = manifest.sampling;
  if (reader.has("cfg_scale")) sampling.cfg_scale = static_cast<float>(reader.number("cfg_scale"));
  if (reader.has("temperature")) sampling.temperature = static_cast<float>(reader.number("temperature"));
  if (reader.has("top_k")) sampling.top_k = reader.integer("top_k", 0);
  if (reader.has("top_p")) sampling.top_p = static_cast<float>(reader.number("top_p"));
  if (reader.has("order")) manifest.sampling_order = reader.choice("order", {"ar", "eagle"});
  if (reader.has("schedule")) manifest.schedule = read_schedule(reader.object("schedule"));
  if (!(sampling.cfg_scale >= 0)) reader.reject("cfg_scale", "0 or more");
  if (sampling.temperature < 0) reader.reject("temperature", "0 or more");
  if (sampling.top_p <= 0 || sampling.top_p > 1) reader.reject("top_p", "a number in (0, 1]");
  reader.finish();
}

void read_tokens(JsonReader tokens, Manifest& manifest) {
  if (tokens.has("kind")) manifest.tokens.kind = tokens.choice("kind", {"codes", "continuous"});
  if (manifest.is_continuous()) {
    manifest.tokens.channels = tokens.integer("channels", 1, kMaxChannels);
  } else {
    manifest.tokens.vocabulary = tokens.integer("vocabulary", 1, kMaxIds);
    manifest.tokens.first_image_id = tokens.integer("first_image_id", 0, kMaxIds);
    manifest.tokens.codebook_size = tokens.integer("codebook_size", 1, kMaxIds);
  }
  tokens.finish();
}

// What continuous tokens are drawn by.
void read_diffusion(JsonReader diffusion, Manifest& manifest) {
  manifest.diffusion.steps = diffusion.integer("steps", 2, kMaxSteps);
  manifest.diffusion.respacing = diffusion.text("respacing");
  diffusion.finish();
}

void read_shapes(JsonReader& reader, Manifest& manifest) {
  if (reader.has("tokens")) read_tokens(reader.object("tokens"), manifest);
  const bool codes = !manifest.is_continuous();
  if (!codes) read_diffusion(reader.object("diffusion"), manifest);
  if (reader.has("target")) {
    JsonReader target = reader.object("target");
    manifest.target.hidden = target.integer("hidden", 1, kMaxSize);
    if (codes) manifest.target.features = target.integer("features", 1, kMaxSize);
    if (codes) manifest.target.head = target.integer("head", 1, kMaxIds);
    target.finish();
  }
  if (reader.has("cache")) {
    JsonReader cache = reader.object("cache");
    manifest.cache.layers = cache.integer("layers", 1, kMaxSize);
    manifest.cache.kv_heads = cache.integer("kv_heads", 1, kMaxSize);
    manifest.cache.head_dim = cache.integer("head_dim", 2, kMaxSize);
    manifest.cache.max_length = cache.integer("max_length", 1, kMaxSize);
    cache.finish();
  }
  if (reader.has("decoder")) {
    JsonReader decoder = reader.object("decoder");
    if (codes) manifest.decoder.codebook_size = decoder.integer("codebook_size", 1, kMaxIds);
    manifest.decoder.downsample = decoder.integer("downsample", 1, kMaxSize);
    if (decoder.has("pixels"))
      manifest.decoder.pixels = decoder.choice("pixels", {"round", "truncate", "nearest"});
    decoder.finish();
  }
}

// Throws unless the folder exists.
void check_folder(const std::string& directory) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (!fs::exists(directory, ignored)) {
    throw Error(ExitCode::bundle,
                "bundle " + directory + ": no such folder; python -m models.export makes bundles");
  }
  if (!fs::is_directory(directory, ignored)) {
    throw Error(ExitCode::bundle,
                "bundle " + directory + ": got a file, expected a folder with manifest.json");
  }
}

// Where the bundle comes from, and its files.
void read_origin(JsonReader& reader, Manifest& manifest) {
  manifest.name = reader.text("name");
  manifest.family = reader.text("family");
  manifest.licence = reader.text("licence");
  manifest.source = reader.text("source");
  JsonReader exporter = reader.object("exporter");
  manifest.exporter_version = exporter.text("version");
  manifest.exporter_torch = exporter.text("torch");
  exporter.finish();
  for (auto& [name, file] : reader.members("files")) {
    if (name.empty() || name[0] == '.' || name.find('/') != std::string::npos)
      file.fail("no plain name of a file in the bundle's folder");
    FileEntry& entry = manifest.files[name];
    entry.bytes = file.unsigned_integer("bytes");
    entry.sha256 = file.text("sha256");
    if (entry.sha256.size() != 64) file.reject("sha256", "64 hexadecimal digits");
    file.finish();
  }
}

void read_modules(JsonReader& reader, Manifest& manifest) {
  for (auto& [role, module] : reader.members("modules")) {
    if (role != "target" && role != "text_encoder" && role != "image_decoder") {
      reader.fail("modules: unknown module \"" + role + "\", expected target, text_encoder or image_decoder");
    }
    manifest.modules[role] = read_module(module, manifest);
  }
  if (!reader.has("drafters")) return;
  for (auto& [name, drafter] : reader.members("drafters")) {
    if (manifest.drafters.empty()) manifest.first_drafter = name;
    manifest.drafters[name] = read_drafter(drafter, manifest);
  }
}

// Data files beside the modules.
void read_data(JsonReader& reader, Manifest& manifest) {
  if (reader.has("trees")) {
    JsonReader trees = reader.object("trees");
    for (const char* device : {"cpu", "cuda"}) {
      if (trees.has(device)) manifest.trees[device] = file_name(trees, device, manifest);
    }
    trees.finish();
  }
  if (reader.has("tokenizer")) manifest.tokenizer = read_tokenizer(reader.object("tokenizer"), manifest);
  if (reader.has("neighbours")) {
    JsonReader neighbours = reader.object("neighbours");
    manifest.neighbours = file_name(neighbours, "file", manifest);
    neighbours.finish();
  }
  if (reader.has("golden")) read_golden(reader.object("golden"), manifest);
}

}  // namespace

Manifest read_manifest(const std::string& directory) {
  check_folder(directory);
  const std::string path = join_path(directory, "manifest.json");
  const Json json = parse_json(read_file(path, ExitCode::bundle), path, ExitCode::bundle);
  JsonReader reader(json, path, ExitCode::bundle);
  const std::int64_t version = reader.integer("schema_version");
  if (version != kSchemaVersion) {
    reader.reject("schema_version",
                  std::to_string(kSchemaVersion) + "; use a matching lamplighter or export the bundle again");
  }

  Manifest manifest;
  manifest.directory = directory;
  read_origin(reader, manifest);
  read_modules(reader, manifest);
  read_data(reader, manifest);
  if (reader.has("prompt")) manifest.prompt = read_prompt(reader.object("prompt"));
  if (reader.has("grids")) {
    for (JsonReader& grid : reader.objects("grids")) manifest.grids.push_back(read_grid(grid));
  }
  if (reader.has("sampling")) read_sampling(reader.object("sampling"), manifest);
  read_shapes(reader, manifest);
  reader.finish();
  check_agreement(reader, manifest);
  return manifest;
}

}  // namespace lamplighter
