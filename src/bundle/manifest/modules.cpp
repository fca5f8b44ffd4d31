#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "bundle/draft_kinds.h"
#include "bundle/manifest/sections.h"

namespace lamplighter {
namespace {

const std::vector<std::string> kRoles = {"target", "text_encoder", "image_decoder", "image_encoder"};
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

DraftModelEntry read_drafter(JsonReader reader, const Manifest& manifest) {
  DraftModelEntry entry;
  entry.module.file = file_name(reader, "file", manifest);
  entry.module.dtype = reader.choice("dtype", kStorage);
  if (reader.has("kind")) entry.kind = reader.text("kind");
  const DraftKindEntry& kind = draft_kind(entry);
  const bool named = reader.has("kind") && kind.kind != DraftKind::other;
  if (!named && !reader.has("layers")) reader.reject("kind", "the name of a known kind, or layers beside it");
  if (kind.has(kDraftHeads)) entry.heads = reader.integer("heads", 1, kMaxSize);
  if (kind.has(kDraftCache)) {
    entry.layers = reader.integer("layers", 1, kMaxSize);
    entry.kv_heads = reader.integer("kv_heads", 1, kMaxSize);
    entry.head_dim = reader.integer("head_dim", 2, kMaxSize);
    if (reader.has("prompt_id")) entry.prompt_id = reader.integer("prompt_id", 0, kMaxIds);
    if (reader.has("padding")) entry.padding = reader.boolean("padding");
    entry.max_length = reader.integer("max_length", 1, kMaxSize);
  }
  if (kind.has(kFeatureLayers)) entry.feature_layers = reader.integers("feature_layers");
  if (kind.has(kDraftQueries) && reader.has("queries")) {
    entry.queries = reader.integer("queries", 1, kMaxSize);
    entry.window = reader.integer("window", 1, kMaxSize);
  }
  reader.finish();
  return entry;
}

TokenizerEntry read_tokenizer(JsonReader reader, const Manifest& manifest) {
  TokenizerEntry entry;
  entry.kind = reader.choice("kind", {"t5", "bpe", "codes"});
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

}  // namespace

void read_modules(JsonReader& reader, Manifest& manifest) {
  for (auto& [role, module] : reader.members("modules")) {
    if (std::find(kRoles.begin(), kRoles.end(), role) == kRoles.end()) {
      reader.fail("modules: unknown module \"" + role +
                  "\", expected target, text_encoder, image_decoder or image_encoder");
    }
    manifest.modules[role] = read_module(module, manifest);
  }
  read_drafters(reader, manifest, manifest.drafters, manifest.first_drafter);
}

void read_drafters(JsonReader& reader, const Manifest& manifest,
                   std::map<std::string, DraftModelEntry>& drafters, std::string& first) {
  if (!reader.has("drafters")) return;
  for (auto& [name, drafter] : reader.members("drafters")) {
    if (drafters.empty()) first = name;
    drafters[name] = read_drafter(drafter, manifest);
  }
}

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

}  // namespace lamplighter
