#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace lamplighter {

// Receives one-line warnings, for example that the CPU is used in place of a device, or that cycles are not
// captured. The library itself prints nothing.
using LogCallback = std::function<void(const std::string& text)>;

// Where and how a bundle runs.
struct RuntimeOptions {
  std::string device = "auto";       // auto (CUDA when there is one), cpu, cuda, cuda:N
  std::string dtype = "auto";        // auto, fp32, bf16, int8, int4, fp16 (CUDA only); auto = bf16
  std::string cache_dtype = "auto";  // auto (that of the activations) or int8: keys and values are rounded
  int threads = 0;                   // CPU threads; 0 = all cores
  int batch_size = 4;                // images generated side by side
  bool graph = true;                 // on CUDA: replay cycles as a captured graph; same tokens either way
  bool record_drafts = false;        // keep what cycles draft (Cycle::drafted): takes time; same tokens
  bool verify_checksums = true;      // compare every file with the manifest's SHA-256 before loading
  LogCallback note;                  // empty: warnings are dropped
};

// How a token is sampled. Order: guidance, temperature, top-k, top-p, sample.
struct SamplingOptions {
  float cfg_scale = 1.0F;    // guided logits = uncond + (cond - uncond) * cfg_scale; <= 1 turns guidance off
  float temperature = 1.0F;  // 0 = always the most probable token
  std::int64_t top_k = 0;    // keep the k most probable tokens and their ties; 0 = all
  float top_p = 1.0F;        // keep the smallest set of tokens with this mass; 1 = all
  std::int64_t cfg_interval = -1;  // guide tokens 0 .. cfg_interval + 1 only; -1 = all
};

// How tokens are drafted and verified. The method gives a default to every option that it reads;
// `lamplighter generate --help-all` lists the methods, and the ranges and defaults of the options.
struct MethodOptions {
  std::string method = "ar";
  std::string rule;            // the acceptance rule
  std::string tree;            // chain-N, fan-K-S-N, lantern-26, lantern-58, dynamic, or a JSON file of paths
  std::string children;        // sampled (without replacement from the filtered draft distribution) or top
  std::string residual;        // lantern, lantern++: the distribution that a rejection leaves
  std::string draft_guidance;  // combined (both halves of a pair are drafted) or conditional
  std::string drafter;         // name in the bundle
  std::string neighbours;      // lantern, lantern++: safetensors or LANTERN's .npy file
  std::string init;            // sjd: what new positions of the window hold
  std::string tail;          // sjd, refine: keep (drafts stay where they may) or fresh (all are sampled anew)
  std::string zipar;         // clean, or official: missing tokens of the row above are seen as zeros
  std::string draft_length;  // full, or auto: chains end where the drafter is not sure of them
  std::optional<float> draft_confidence;     // auto: the least product of the drafter's largest probabilities
  std::optional<std::int64_t> draft_layers;  // self: the first layers of the target, which draft
  std::optional<std::int64_t> draft_window;  // self: newest tokens of the image that they see; not set: all
  std::optional<std::int64_t> front;         // eagle+sjd, flash+sjd: positions that the drafter fills
  std::optional<std::int64_t> k;             // lantern, lantern++: neighbours of a token
  std::optional<float> delta;   // lantern: most probability that neighbours lend; cool: scale of the weights
  std::optional<float> mu, nu;  // cool: the weight at depth i is delta * exp(-nu * i - mu)
  std::optional<float> lenience;  // lenient: l in (0, 1], the draft's probabilities count l times
  // typical: tokens with a probability above min(epsilon, alpha * exp(-entropy)) are accepted
  std::optional<float> epsilon, alpha;
  // grouped: the most difference of probabilities, and squared distance of unit vectors, in a group of tokens
  std::optional<float> group_gap, group_distance;
  std::optional<std::int64_t> steps;          // continuous tokens: passes of an image
  std::optional<float> prefill_ratio;         // cspd: share of the tokens generated before any is drafted
  std::optional<std::int64_t> gamma;          // cspd: tokens drafted in a cycle
  std::optional<std::int64_t> cap;            // cspd: most proposals for a token that was rejected
  std::string last_noise;                     // on or off: the last denoising step of ar adds its noise
  std::optional<std::int64_t> ahead;          // row-parallel decoding: tokens that a row is ahead of the next
  std::vector<float> lambda;                  // lantern++: factor >= 1, one for all depths or one per depth
  std::optional<std::int64_t> dynamic_depth;  // tree dynamic: expansions after the first
  std::optional<std::int64_t> dynamic_width;  // tree dynamic: nodes expanded per level
  std::optional<std::int64_t> dynamic_nodes;  // tree dynamic: drafted nodes that are verified
  std::string adapt;  // none, or neighbours: drafts are as long as those beside and above were accepted
};

// A rectangle of an image, in pixels, that is generated anew. A token that it touches belongs to it. The
// model sees what lies above and to the left of a token, and nothing of what comes later.
struct Region {
  int x = 0, y = 0, width = 0, height = 0;
  // What lies right of the rectangle and below it: keep, or redraw (it is generated, too, but in the rows of
  // the rectangle what lies left of it stays).
  std::string behind = "keep";
  // How often the region is generated. More than once: every candidate is scored by the probability of the
  // kept tokens that come after the first new one, and one is picked.
  int candidates = 1;
  std::string pick = "best";  // the likeliest, or sample (by probability)
};

// One image to generate. What is not set comes from the bundle.
struct Request {
  std::string prompt;  // caption, UTF-8 (text bundles)
  // What guidance leads away from, UTF-8, may be empty. Only bundles with PromptEntry::negative_text take
  // one.
  std::optional<std::string> negative_prompt;
  std::optional<std::int64_t> class_id;  // class (class-conditional bundles)
  std::uint64_t seed = 42;
  int width = 0;   // pixels; 0 = the bundle's first grid
  int height = 0;  // pixels
  std::optional<float> cfg_scale, temperature, top_p;
  std::optional<std::int64_t> top_k, cfg_interval;
  std::optional<MethodOptions> method;  // of this image alone; not set: the run's
  // Codebook indices of the first positions, raster order, fewer than the grid has: they are kept, and the
  // rest of the image is generated behind them.
  std::vector<std::int32_t> kept;
  // Set: `kept` holds all codes of an image, and the codes of the region are generated anew.
  std::optional<Region> region;
};

}  // namespace lamplighter
