#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lamplighter/api.h"
#include "lamplighter/bundle.h"
#include "lamplighter/describe.h"
#include "lamplighter/error.h"
#include "lamplighter/image.h"
#include "lamplighter/method.h"
#include "lamplighter/options.h"

namespace lamplighter {

// A drafted node that verification refused.
struct RefusedNode {
  std::int64_t node = 0;
  // Probabilities of its token behind its parent: the target's, guided and filtered, and that with which it
  // was drafted, 1 where children are not sampled. Both count before siblings of the node are refused.
  float target = 0, draft = 0;
};

// The tree of a cycle. Node 0, its root, is the last token before the cycle.
struct DraftedTree {
  std::vector<std::int64_t> parents;  // of the root -1
  std::vector<std::int64_t> tokens;   // -1: the node holds none
  std::int64_t accepted_node = 0;     // the last one; the accepted path leads there
  // Children of the nodes on this path that are not on it, in order. Rules that verify child after child
  // refuse those in front of the accepted one.
  std::vector<RefusedNode> refused;
};

// One round of draft, score, verify, commit for one image. Times are for all images that run side by
// side; where a device replays whole cycles, the times of the parts are not known and 0.
struct Cycle {
  std::int64_t first = 0;      // index of the first token committed, kept ones counted
  std::int64_t committed = 0;  // tokens, the bonus token included
  std::int64_t accepted = 0;   // drafted tokens accepted, also those past the last token of the image
  double draft_ms = 0, score_ms = 0, verify_ms = 0, commit_ms = 0;
  double cycle_ms = 0;  // the whole
  // With RuntimeOptions::record_drafts, for methods that draft trees.
  std::optional<DraftedTree> drafted = std::nullopt;
};

// What one image cost. Times are wall-clock milliseconds from its first pass on. Images that begin together
// share the times of text and prefill; images that run side by side share the time of decoding.
struct Statistics {
  std::int64_t kept = 0;           // image tokens that were given
  std::int64_t tokens = 0;         // image tokens committed, without those
  std::int64_t target_passes = 0;  // prefills included
  int batch = 1;                   // most images that ran side by side with it
  double text_ms = 0, prefill_ms = 0, decode_ms = 0, image_ms = 0;
  double total_ms() const { return text_ms + prefill_ms + decode_ms + image_ms; }
  double cycle_ms = 0;                                              // sum over the cycles
  double draft_ms = 0, score_ms = 0, verify_ms = 0, commit_ms = 0;  // its parts, where they are known
  std::vector<Cycle> cycles;                                        // without the prefills
  std::vector<std::int64_t> order;  // positions, raster order: of kept tokens, then as others were committed
  // Tree nodes at depth d + 1 that were drafted, and how often the accepted path reached that depth.
  std::vector<std::int64_t> drafted, accepted;
  // reached[d][r] counts the cycles whose accepted path took the child of rank r at depth d + 1.
  std::vector<std::vector<std::int64_t>> reached;

  // Continuous tokens: proposals in the place of rejected drafts, and the drafts whose proposals ran out, so
  // that the last one was taken: a plain sample of the target.
  std::int64_t proposals = 0, fallbacks = 0;

  // Of a region with several candidates. The numbers above are of the one that was picked.
  std::vector<double> log_probabilities;  // of the kept tokens behind the first new one, by candidate
  std::int64_t picked = 0;
  std::int64_t passes_of_all = 0;  // target passes of all candidates and of their scores

  std::int64_t prefills = 1;  // passes over the prompt and kept tokens, each of which gives a token

  // Autoregressive target passes per target pass made: tokens over passes, prefill included.
  double step_compression() const {
    return target_passes > 0 ? static_cast<double>(tokens) / static_cast<double>(target_passes) : 0.0;
  }
  // Tokens per cycle, bonus token included.
  double acceptance_length() const {
    return cycles.empty() ? 0.0 : static_cast<double>(tokens - prefills) / static_cast<double>(cycles.size());
  }
};

// An image's tokens as codebook indices in raster order; continuous tokens have none.
struct Codes {
  int rows = 0, columns = 0;
  std::vector<std::int32_t> ids;
  std::vector<std::int32_t> preview = {};  // of the smaller image that was generated in front of them, if any

  std::size_t positions() const { return static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns); }
};

struct Result {
  Image image;  // without pixels where the bundle has no image decoder
  Codes codes;
  SamplingOptions sampling;  // as used: request over bundle defaults
  MethodOptions method;      // as used: complete
  std::uint64_t seed = 0;
  std::string cut;  // the end of the caption, from the word at which a bundle stops reading
  Statistics statistics;
};

// The answer to a DescribeRequest.
struct Description {
  std::string text;
  std::vector<std::int64_t> ids;  // of the vocabulary, without the one that ended it
  bool is_cut = false;            // it has as many tokens as it may have, and no end
  std::int64_t prompt_tokens = 0;
  SamplingOptions sampling;  // as used
  MethodOptions method;      // as used: complete
  Statistics statistics;     // of text tokens in place of image tokens
};

// How far a run is.
struct Progress {
  // Requests that have begun and are not handed over yet, in order. Some may be complete and wait for one
  // before them.
  std::vector<std::size_t> requests;
  std::int64_t tokens_done = 0, tokens_total = 0;  // of these images
  std::int64_t run_done = 0, run_total = 0;        // tokens of all requests of the run
  const Grid* grid = nullptr;                      // of these images
  // Tokens of image requests[index] so far, in raster order, up to the first that is missing.
  std::function<std::vector<std::int32_t>(std::size_t index)> codes;
};
// Return false to stop the run: it throws Error(ExitCode::interrupted).
using ProgressCallback = std::function<bool(const Progress&)>;
// May be called from another thread than the one that generates, but never beside a ProgressCallback.
using ResultCallback = std::function<void(std::size_t request, Result&& result)>;

// Whether a request begins: it is generated, it is skipped, or the run stops before it, once the images in
// work are complete.
enum class Admission { generate, skip, stop };
// Called for every request in order when a slot is free for it, until one answer is stop.
using AdmissionCallback = std::function<Admission(std::size_t request)>;

// Where a server's requests come from and its images go. The source numbers its requests as it likes. Calls
// come from the thread that runs TextToImage::serve; `complete` and `fail` may come from another one beside
// them. None may throw.
class LAMPLIGHTER_API RequestSource {
 public:
  struct Entry {
    std::uint64_t number = 0;
    Request request;
  };
  using Fits = std::function<bool(const Request& request)>;

  virtual ~RequestSource() = default;
  // Returns a request that begins now, or none for the moment. `fits` says which can run beside those in
  // work. `is_idle`: none is in work; then any request will do, the call may wait for one, and none ends the
  // run.
  virtual std::optional<Entry> next(const Fits& fits, bool is_idle) = 0;
  // Called after every cycle for every request in work. Return false to cancel the request: it gets no
  // further calls and frees its slot.
  virtual bool is_wanted(std::uint64_t number) = 0;
  // Called after every cycle with the codes so far in raster order, none of continuous tokens; `committed`
  // tokens are new.
  virtual void progress(std::uint64_t number, const Grid& grid, const std::vector<std::int32_t>& codes,
                        std::int64_t committed) = 0;
  virtual void complete(std::uint64_t number, Result&& result) = 0;
  // The request cannot be generated, or was in work when something failed.
  virtual void fail(std::uint64_t number, const Error& error) = 0;
};

// Generates images with one bundle. The image of a request depends on the request and the bundle alone, not
// on the other requests, the batch size or the number of threads: bit for bit on the CPU, in bf16 for each
// set of instructions(), in fp32 for all; continuous tokens up to rounding.
class LAMPLIGHTER_API TextToImage {
 public:
  // Checks and loads the bundle. Throws Error (bundle, device, memory).
  explicit TextToImage(const std::string& bundle_directory, const RuntimeOptions& options = {});
  ~TextToImage();
  TextToImage(TextToImage&&) noexcept;
  TextToImage& operator=(TextToImage&&) noexcept;

  const Manifest& manifest() const;
  std::string device() const;       // cpu, cuda:0, ...
  std::string dtype() const;        // fp32, bf16, fp16, int8, int4
  std::string cache_dtype() const;  // fp32, bf16, fp16, int8
  // In bf16 on the CPU the set of instructions that generates, on which bits depend: portable, avx2, avx512
  // or amx. Else empty.
  std::string instructions() const;

  // Throws Error (input, usage; bundle for its own method) when the bundle cannot generate a request. Cheap:
  // needs no weights.
  static void check(const Manifest& manifest, const Request& request);

  // One line each for what the bundle does not know of a caption (VocabularyEntry) or cuts off. Needs no
  // weights.
  std::vector<std::string> notes(const Request& request);

  // Generates all requests, `batch_size` side by side: when an image is complete, the next request takes its
  // slot, as long as methods and grids are the same and all are sampled or all at temperature 0. Hands over
  // results in request order, each as soon as it and all before it are ready. Throws Error(ExitCode::usage or
  // bundle) when the method does not fit the bundle, and the first failure of a request or callback.
  void generate(const std::vector<Request>& requests, const ResultCallback& on_result,
                const ProgressCallback& on_progress = {}, const MethodOptions& method = {},
                const AdmissionCallback& on_admission = {});
  Result generate(const Request& request, const MethodOptions& method = {});

  // Generates the requests of a source, up to `batch_size` side by side, until the source ends. A request
  // joins those in work when it fits and a slot is free. Failures of requests go to the source.
  void serve(RequestSource& source, const MethodOptions& method = {});

  // Images from codebook indices. May be called from any thread once an image was generated. Throws
  // Error(ExitCode::input) when they do not fit the decoder.
  Image decode(const Codes& codes);
  // The codebook indices of an image with the sides of a grid (fit_image). Loads the image encoder when it is
  // called first. May be called from any thread. Throws Error(ExitCode::bundle) for bundles without one,
  // Error(ExitCode::input) for sides that the bundle does not have.
  Codes encode(const Image& image);

  // Throws Error (bundle, usage, input) when the bundle cannot answer a request. Cheap: needs no weights.
  static void check(const Manifest& manifest, const DescribeRequest& request);
  // Describes an image with the bundle's TextEntry. Methods: ar, and the lossless ones that need no drafter
  // or find one of texts; the text then follows the target's distribution. Not beside generate or serve.
  // Throws Error as check does, Error(ExitCode::usage) for other methods, and what `on_text` throws.
  Description describe(const DescribeRequest& request, const MethodOptions& method = {},
                       const TextCallback& on_text = {});

 private:
  friend LAMPLIGHTER_API MethodOptions choose_method(const MethodOptions& wanted, const Manifest& manifest,
                                                     const RuntimeOptions& runtime, std::size_t images,
                                                     const LogCallback& note);
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace lamplighter
