#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace lamplighter {

// Told in one line what is worth knowing and no error: that the CPU takes the place of a device, that cycles
// are not captured. The library itself prints nothing.
using NoteCallback = std::function<void(const std::string& text)>;

// Where and how a bundle runs.
struct RuntimeOptions {
  std::string device = "auto";       // auto (CUDA when there is one), cpu, cuda, cuda:N
  std::string dtype = "auto";        // auto, fp32, bf16, int8, int4, fp16 (CUDA only); auto = bf16
  std::string cache_dtype = "auto";  // auto (that of the activations) or int8: keys and values are rounded
  int threads = 0;                   // CPU threads; 0 = all cores
  int batch_size = 4;                // images drawn side by side
  bool graph = true;                 // on CUDA: replay cycles as a captured graph; same tokens either way
  bool verify_checksums = true;      // compare every file with the manifest's SHA-256 before loading
  NoteCallback note;                 // empty: notes are dropped
};

// How tokens are drawn. Order: guidance, temperature, top-k, top-p, draw.
struct SamplingOptions {
  float cfg_scale = 1.0F;    // guided logits = uncond + (cond - uncond) * cfg_scale; <= 1 turns guidance off
  float temperature = 1.0F;  // 0 = always the most probable token
  std::int64_t top_k = 0;    // keep the k most probable tokens and their ties; 0 = all
  float top_p = 1.0F;        // keep the smallest set of tokens with this mass; 1 = all
  std::int64_t cfg_interval = -1;  // guide tokens 0 .. cfg_interval + 1 only; -1 = all
};

// How many tokens a target pass may commit. `method` sets the rest; what is set here overrides it.
//   method     rule       tree         children
//   ar         -          -            -         one token a pass
//   eagle      exact      static       sampled   EAGLE (Li et al. 2024)
//   eagle-2    exact      dynamic      top       EAGLE-2 (Li et al. 2024)
//   eagle-3    exact      static       sampled   EAGLE-3 (Li et al. 2025): the drafter reads inner layers
//   lantern    lantern    static       sampled   LANTERN (arXiv 2410.03355): neighbours up to a mass of delta
//   lantern++  lantern++  static       sampled   LANTERN++ (2025): neighbours up to (lambda - 1) * p(token)
//   draft-model exact     static       sampled   speculative sampling: a small target drafts (Leviathan 2023)
//   medusa     exact      static       sampled   heads on the target's hidden state (Cai et al. 2024)
//   mlp        exact      static       sampled   MLP speculator (Wertheimer et al. 2024)
//   flash      exact      static       sampled   one pass guesses several tokens (FLASH)
//   self       exact      static       sampled   the target's first layers draft (LayerSkip, MagicDec)
//   sjd        exact      window       -         speculative Jacobi decoding (Teng et al. 2024), no drafter
//   scd        exact      window       -         sjd, whose drafts stay where they may
//   sjd-pac    exact      fan          -         sjd with several candidates for its first places (SJD-PAC)
//   eagle+sjd  exact      fan          sampled   sjd whose first places EAGLE's drafter fills
//   flash+sjd  exact      fan          sampled   the same with FLASH's drafter
//   refine     exact      chain        sampled   sjd whose drafts a small network corrects
//   gsd        grouped    window       -         sjd with groups of tokens that are alike
//   lookahead  exact      chain        top       lookahead decoding (Fu et al. 2024), no drafter
//   ngram      exact      chain        top       prompt lookup (Saxena 2023), no drafter
//   zipar      -          -            -         ZipAR (He et al. 2024): rows side by side, relaxed
//   zipar+sjd  exact      window       -         zipar with a window of drafts in every row
//   pjd        exact      window       -         the same; drafts see those of the rows above
// Of bundles whose tokens are continuous:
//   ar         -          -            -         MAR's parallel decoding (Li et al. 2024, arXiv 2406.11838)
//   cspd       exact      -            -         continuous speculative decoding (arXiv 2411.11925)
struct MethodOptions {
  std::string method = "ar";
  std::string rule;      // exact, traversal, block (exact laws); relaxed: lantern, lantern++, cool, typical,
                         // grouped, lenient, official-pac; cspd: exact, paper, released
  std::string tree;      // chain-N, fan-K-S-N, lantern-26, lantern-58, dynamic, or a JSON file of paths
  std::string children;  // sampled (without replacement from the filtered draft distribution) or top
  std::string residual;  // paper, optimal, or official-static, official-dynamic, official-lumina-static,
                         // official-lumina-dynamic: what is left of the target after a relaxed rejection
  std::string draft_guidance;  // combined (both halves of a pair are drafted) or conditional
  std::string drafter;         // name in the bundle; empty = its first
  std::string neighbours;      // safetensors or official .npy file; empty = the bundle's, else computed
  std::string init;   // sjd: what new places of the window hold: uniform, random, repeat, sample or above
  std::string tail;   // sjd, refine: keep (drafts stay where they may) or fresh (all are drawn anew)
  std::string zipar;  // zipar: clean, or released (what a row lacks of the picture is seen as zeros)
  std::string draft_length;               // full, or auto: chains end where the drafter is not sure of them
  std::optional<float> draft_confidence;  // auto: the least that it must give what it has drafted
  std::optional<std::int64_t> draft_layers;  // self: layers of the target that draft, the first ones
  std::optional<std::int64_t> draft_window;  // self: rows of the picture that they see; not set: all
  std::optional<std::int64_t> front;         // eagle+sjd, flash+sjd: places that the drafter fills, 1 or more
  std::optional<std::int64_t> k;             // neighbours looked at besides the token itself
  std::optional<float> delta;     // lantern: bound on the borrowed mass, >= 0; cool: scale of the weights
  std::optional<float> mu, nu;    // cool: the weight at depth i is delta * exp(-nu * i - mu)
  std::optional<float> lenience;  // lenient: l in (0, 1], tokens count 1 / l times; 1: the law of ar
  // typical: a token is accepted with a probability above min(epsilon, alpha * exp(-entropy))
  std::optional<float> epsilon, alpha;
  // grouped: tokens of a group differ in probability by less than the gap, their vectors, at unit length, by
  // less than the squared distance
  std::optional<float> group_gap, group_distance;
  // Continuous tokens: passes of a picture (ar, and cspd by the rule released); share of the tokens that the
  // target draws before any is drafted; tokens drafted a cycle; most proposals for a token that was rejected;
  // on or off: whether the last denoising step of ar adds its noise
  std::optional<std::int64_t> steps;
  std::optional<float> prefill_ratio;
  std::optional<std::int64_t> gamma, cap;
  std::string last_noise;
  std::optional<std::int64_t> ahead;          // rows side by side: tokens that one is ahead of the next
  std::vector<float> lambda;                  // lantern++: factor >= 1, one for all depths or one per depth
  std::optional<std::int64_t> dynamic_depth;  // dynamic: expansions after the first
  std::optional<std::int64_t> dynamic_width;  // dynamic: nodes expanded per level
  std::optional<std::int64_t> dynamic_nodes;  // dynamic: drafted nodes kept
};

// One picture to draw. What is not set comes from the bundle.
struct Request {
  std::string prompt;  // caption, UTF-8 (text bundles)
  // What guidance leads away from, UTF-8, maybe empty; bundles with PromptEntry::negative_text alone take
  // one.
  std::optional<std::string> negative_prompt;
  std::optional<std::int64_t> class_id;  // class (class-conditional bundles)
  std::uint64_t seed = 42;
  int width = 0;   // pixels; 0 = the bundle's first grid
  int height = 0;  // pixels
  std::optional<float> cfg_scale, temperature, top_p;
  std::optional<std::int64_t> top_k, cfg_interval;
  std::optional<MethodOptions> method;  // of this picture alone; not set: the run's
};

}  // namespace lamplighter
