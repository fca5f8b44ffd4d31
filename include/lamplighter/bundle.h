#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lamplighter/api.h"
#include "lamplighter/options.h"

namespace lamplighter {

// manifest.json of a bundle, field by field (src/bundle/manifest/manifest.schema.json has the schema). A
// bundle is a folder that describes one model: the engine reads all that differs between families from here.
struct FileEntry {
  std::uint64_t bytes = 0;
  std::string sha256;  // 64 hexadecimal digits
};

struct ModuleEntry {
  std::string file;   // TorchScript archive
  std::string dtype;  // storage: float32, bfloat16, float16; int8, int4: weights of products are rounded
  std::vector<std::string> methods = {};  // of the archive, besides those that every one has
};

// A network that drafts. Which fields a kind has is in src/bundle/draft_kinds.h.
struct DraftModelEntry {
  ModuleEntry module;
  std::string kind = "eagle";                           // a method calls one kind
  std::int64_t layers = 0, kv_heads = 0, head_dim = 0;  // shape of its cache
  // The id that all prompt positions embed; none: position i embeds the prompt's own id i + 1 (prompts of
  // tokens).
  std::optional<std::int64_t> prompt_id;
  bool padding = false;         // it was trained with the padding in front of captions and reads it
  std::int64_t max_length = 0;  // positions that it has
  std::int64_t heads = 0;       // tokens that it predicts in a pass
  // Image positions older than the newest `window` are compressed to `queries`; 0: they are not.
  std::int64_t queries = 0, window = 0;
  std::vector<std::int64_t> feature_layers = {};  // layers of the target whose inputs, side by side, it reads
};

struct TokenizerEntry {
  std::string kind;  // t5: SentencePiece; bpe: byte-level, a tokenizer.json
  std::string file;
  std::int64_t max_length = 0;  // ids of a text; t5: end token included. The rest is for t5 alone.
  std::int64_t pad = 0, eos = 1, unk = 2;
  std::int64_t extra_ids = 0;  // sentinels after the pieces: <extra_id_k> = pieces + extra_ids - 1 - k
  std::string cleaning;        // llamagen, lower, none
};

// One recorded call of a module method; names are tensors of the golden file.
struct GoldenRecord {
  std::string module, method;
  std::vector<std::string> inputs, outputs;
  std::vector<std::string> mutated;  // expected content of the last input after the call
  double tolerance = 0;              // largest |difference| in fp32, of modules with rounded weights in bf16
  double distance = 0;  // with rounded weights: relative root mean square difference from results in bf16
};

// What a bundle can generate, where that can be said: kinds of attributes, their values and the words for
// them.
struct VocabularyEntry {
  struct Value {
    std::string name;
    std::vector<std::string> phrases;  // lower case
  };
  struct Kind {
    std::string name;
    std::vector<Value> values;
  };
  std::vector<Kind> kinds;
  std::string subject;             // the kind without which a caption says nothing
  std::vector<std::string> other;  // further words that captions may have: articles, "an image of"
  std::string example;             // a caption
};

struct PromptEntry {
  std::string kind;           // text_features, class, tokens
  std::int64_t length = 0;    // rows reserved for the prompt
  std::string align;          // end: prompt row j of n has position length - n + j; start: position j
  std::int64_t features = 0;  // width of the text encoder's features (text_features)
  std::int64_t classes = 0;   // number of classes (class)
  // tokens: prefix, the ids of `text` with {prompt} and the grid's sides filled in, suffix, then `before` of
  // the grid; without a prompt: `unconditional`, then `before`.
  std::string text;
  std::vector<std::int64_t> prefix, suffix, unconditional;
  bool strip = false;                     // white space around a caption goes, that of Python's str.strip()
  std::optional<std::string> empty_text;  // in place of `text`, for a caption of nothing
  // Both halves of guidance have as many ids: `unconditional` is followed by this one, as often as the text
  // has ids, and by `suffix`. The target sees it as it sees any other id.
  std::optional<std::int64_t> unconditional_pad;
  // Of families with negative prompts: `unconditional` is followed by the ids of this text, with {prompt}
  // filled in by what a request does not want, and by `negative_prompt` where it does not say. Its length has
  // nothing to do with that of the conditional half.
  std::optional<std::string> negative_text;
  std::string negative_prompt;
  std::optional<VocabularyEntry> vocabulary;  // of bundles that know few words
};

// Of targets that also describe images: prefix, the ids of `text` with {prompt} and {image} filled in,
// suffix. {image} stands for before_image, the codes of an image with the size of the first grid,
// after_image.
struct TextEntry {
  std::string text;
  std::vector<std::int64_t> prefix, before_image, after_image, suffix;
  std::vector<std::int64_t> stop;  // each of them ends an answer
  std::int64_t length = 0;         // positions that a prompt and its answer have
  SamplingOptions sampling;
  std::map<std::string, DraftModelEntry> drafters;  // of answers, by name; none of them drafts images
  std::string first_drafter;                        // the file's first, the default of methods
};

struct Grid {
  int width = 0, height = 0;  // pixels
  int rows = 0, columns = 0;  // tokens
  // Token ids around the codes, never generated: `before` ends the prompt, `row_end` (one id or none) follows
  // the last code of a row, `after` would follow the image and is not fed to the target.
  std::vector<std::int64_t> before, row_end, after;
  // Sides in tokens of a smaller image, whose codes are generated in front of the image's own; 0: none is.
  int preview_rows = 0, preview_columns = 0;

  std::int64_t preview_tokens() const { return static_cast<std::int64_t>(preview_rows) * preview_columns; }
  // Codes that are generated.
  std::int64_t tokens() const { return preview_tokens() + static_cast<std::int64_t>(rows) * columns; }
  // Rows the image takes in a cache: codes, and the row ends between them.
  std::int64_t length() const { return tokens() + (row_end.empty() ? 0 : rows - 1); }
};

// The target's cache: keys and values of kv_heads heads in every layer, max_length rows at most.
struct CacheEntry {
  std::int64_t layers = 0, kv_heads = 0, head_dim = 0, max_length = 0;
};

// How the scale of guidance goes on while an image is generated.
struct GuidanceSchedule {
  // constant; or linear, of MAR: with m of L tokens left behind a token, and not less than one, its scale is
  //   1 + (s - 1) (L - m) / L
  // where all tokens of one pass count as its last one; or decay, of Lumina-mGPT 2.0's solver: when n ids of
  // the image stand behind its first one, codes and the ids around them, the scale of the next id is
  //   s <- max(floor, s * (1 - n / (share * rows * columns)))
  // with the last one's s, and the request's in front of the first code.
  std::string kind = "constant";
  double floor = 1;    // decay
  double share = 1;    // decay: of the image's codes
  bool raise = false;  // decay: a scale below the floor becomes the floor; otherwise it stays as it is
};

struct Manifest {
  std::string directory;  // where it was read from
  std::string name, family, licence, source;
  std::string exporter_version, exporter_torch;
  std::map<std::string, FileEntry> files;
  std::map<std::string, ModuleEntry> modules;       // target, text_encoder, image_decoder, image_encoder
  std::map<std::string, DraftModelEntry> drafters;  // of images, by name
  std::string first_drafter;                        // the file's first, the default of methods
  std::map<std::string, std::string> trees;         // tree files by kind of device: cpu, cuda
  std::optional<TokenizerEntry> tokenizer;
  std::optional<std::string> neighbours;  // file
  std::optional<std::string> golden;      // file
  std::vector<GoldenRecord> golden_records;
  std::optional<PromptEntry> prompt;
  struct {
    std::string kind = "codes";  // or continuous: vectors, generated by a diffusion head; then channels alone
    std::int64_t vocabulary = 0, first_image_id = 0, codebook_size = 0;
    std::int64_t channels = 0;
  } tokens;
  // Of continuous tokens: denoising steps of a token, and how training steps were skipped.
  struct {
    std::int64_t steps = 0;
    std::string respacing;
  } diffusion;
  std::vector<Grid> grids;
  std::optional<TextEntry> text;
  SamplingOptions sampling;
  GuidanceSchedule schedule;
  std::string sampling_order = "ar";  // ar: temperature, top-k, top-p; eagle: temperature, top-p, top-k
  struct {
    std::int64_t hidden = 0, features = 0, head = 0;
    std::int64_t head_layers = 1;  // 2: two products, not linear in the hidden state
  } target;
  CacheEntry cache;
  struct {
    std::int64_t codebook_size = 0, downsample = 0;
    // Bytes of x in [-1, 1]: round = trunc(127.5 x + 128), as LlamaGen saves images; truncate =
    // trunc(127.5 (x + 1)), as the Chameleon family does; nearest = 127.5 (x + 1) to the nearest, halves to
    // the even one, as Lumina-mGPT 2.0 does.
    std::string pixels = "round";
  } decoder;

  bool has(const std::string& module) const { return modules.count(module) != 0; }
  bool is_continuous() const { return tokens.kind == "continuous"; }
  // Of images and of texts; their names differ.
  std::map<std::string, DraftModelEntry> all_drafters() const {
    std::map<std::string, DraftModelEntry> all = drafters;
    if (text) all.insert(text->drafters.begin(), text->drafters.end());
    return all;
  }
};

// Reads and checks DIRECTORY/manifest.json: schema version, unknown keys, types, and the agreement of
// vocabulary, codebook, head and grids. Touches no other file. Throws Error(ExitCode::bundle).
LAMPLIGHTER_API Manifest read_manifest(const std::string& directory);

// Compares presence and size of every file the manifest names, and with `checksums` their SHA-256.
// Throws Error(ExitCode::bundle) for the first that differs.
LAMPLIGHTER_API void verify_files(const Manifest& manifest, bool checksums);
// What is wrong with each file that differs, by its name.
LAMPLIGHTER_API std::map<std::string, std::string> find_damage(const Manifest& manifest, bool checksums);

// What generating tokens would still need, as names of manifest entries; empty when they can be generated.
LAMPLIGHTER_API std::vector<std::string> missing_for_tokens(const Manifest& manifest);
// The same for images, which an image decoder makes of the tokens.
LAMPLIGHTER_API std::vector<std::string> missing_for_generation(const Manifest& manifest);
// Throw Error(ExitCode::bundle), naming what is missing, if anything is.
LAMPLIGHTER_API void require_tokens(const Manifest& manifest);
LAMPLIGHTER_API void require_generatable(const Manifest& manifest);

// The grid of the given size in pixels (0 x 0: the first). Throws Error(ExitCode::usage) listing the grids
// there are.
LAMPLIGHTER_API const Grid& find_grid(const Manifest& manifest, int width, int height);

}  // namespace lamplighter
