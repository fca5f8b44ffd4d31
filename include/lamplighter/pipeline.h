#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lamplighter/api.h"
#include "lamplighter/bundle.h"
#include "lamplighter/error.h"
#include "lamplighter/image.h"
#include "lamplighter/method.h"
#include "lamplighter/options.h"

namespace lamplighter {

// One round of draft, score, judge, commit for one picture. Times are those of all pictures drawn together;
// where a device replays whole cycles, their parts are not known and 0.
struct Cycle {
  std::int64_t first = 0;      // index of the first token committed
  std::int64_t committed = 0;  // tokens, the bonus token included
  std::int64_t accepted = 0;   // drafted tokens accepted, also those past the last token of the picture
  double draft_ms = 0, score_ms = 0, judge_ms = 0, commit_ms = 0;
  double cycle_ms = 0;  // the whole
};

// What one picture cost. Times are wall-clock milliseconds; those of text and prefill are shared by pictures
// that began together, those of decoding by pictures drawn side by side.
struct Statistics {
  std::int64_t tokens = 0;         // image tokens committed
  std::int64_t target_passes = 0;  // prefill included
  int batch = 1;                   // most pictures that were drawn side by side with it
  double text_ms = 0, prefill_ms = 0, decode_ms = 0, image_ms = 0;
  double total_ms() const { return text_ms + prefill_ms + decode_ms + image_ms; }
  double cycle_ms = 0;                                             // sum over the cycles
  double draft_ms = 0, score_ms = 0, judge_ms = 0, commit_ms = 0;  // its parts, where they are known
  std::vector<Cycle> cycles;        // without the prefill, which commits the first token
  std::vector<std::int64_t> order;  // the tokens' places, raster order, as they were committed
  // Tree nodes at depth d + 1 that were drafted, and how often the accepted path reached that depth.
  std::vector<std::int64_t> drafted, accepted;
  // Which children led on: reached[d][r] counts the cycles whose path took the child of rank r at depth d
  // + 1.
  std::vector<std::vector<std::int64_t>> reached;

  // Of continuous tokens: what was proposed in the place of rejected drafts, and how many of those ran out of
  // proposals and took the last one, a plain sample of the target.
  std::int64_t proposals = 0, fallbacks = 0;

  // Autoregressive target passes per target pass made: tokens over passes, prefill included.
  double step_compression() const {
    return target_passes > 0 ? static_cast<double>(tokens) / static_cast<double>(target_passes) : 0.0;
  }
  // Tokens per cycle, bonus token included.
  double acceptance_length() const {
    return cycles.empty() ? 0.0 : static_cast<double>(tokens - 1) / static_cast<double>(cycles.size());
  }
};

// A picture's tokens as codebook indices in raster order; continuous tokens have none.
struct Codes {
  int rows = 0, columns = 0;
  std::vector<std::int32_t> ids;

  std::size_t places() const { return static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns); }
};

struct Result {
  Image image;
  Codes codes;
  SamplingOptions sampling;  // as used: request over bundle defaults
  MethodOptions method;      // as used: complete
  std::uint64_t seed = 0;
  std::string cut;  // the caption's end, where the bundle does not take it all
  Statistics statistics;
};

// What is being drawn. Return false to stop (then Error(ExitCode::interrupted) is thrown).
struct Progress {
  // Requests that have begun and are not yet handed over, in order; some may be complete and wait for one
  // before them.
  std::vector<std::size_t> requests;
  std::int64_t tokens_done = 0, tokens_total = 0;  // of these pictures
  std::int64_t run_done = 0, run_total = 0;        // tokens of all pictures that were asked for
  const Grid* grid = nullptr;                      // of these pictures
  // Tokens of picture requests[index] so far, raster order, up to the first that is lacking.
  std::function<std::vector<std::int32_t>(std::size_t index)> codes;
};
using ProgressCallback = std::function<bool(const Progress&)>;
// May be called from another thread than the one that draws, but never beside a ProgressCallback.
using ResultCallback = std::function<void(std::size_t request, Result&& result)>;

// What becomes of a request whose turn has come: it is drawn, or passed over, or it and all behind it are
// left while the pictures in work are completed.
enum class Turn { draw, skip, stop };
// Asked when a picture could begin, by the thread that draws, for every request in order until one answer is
// stop.
using TurnCallback = std::function<Turn(std::size_t request)>;

// Where requests come from while others are drawn, and where their pictures go: what a server is to the
// engine. Requests have numbers that the feed chooses. Calls come from the thread that draws, `picture` may
// come from another one beside them; none may throw.
class LAMPLIGHTER_API Feed {
 public:
  struct Entry {
    std::uint64_t number = 0;
    Request request;
  };
  using Fits = std::function<bool(const Request& request)>;

  virtual ~Feed() = default;
  // A request that begins now, or none for the moment. `fits` tells which can be drawn beside those in work.
  // With `idle`, none is in work: then any request will do, the call may wait for one, and none is the end.
  virtual std::optional<Entry> next(const Fits& fits, bool idle) = 0;
  // Asked after every cycle of every request in work. Of one that nobody wants no more is told, and its place
  // is free at once.
  virtual bool is_wanted(std::uint64_t number) = 0;
  // How far a request is: its codes so far in raster order, none of continuous tokens; `committed` tokens are
  // new.
  virtual void progress(std::uint64_t number, const Grid& grid, const std::vector<std::int32_t>& codes,
                        std::int64_t committed) = 0;
  // A request is complete.
  virtual void picture(std::uint64_t number, Result&& result) = 0;
  // A request cannot be drawn, or was in work when something failed.
  virtual void failed(std::uint64_t number, const Error& error) = 0;
};

// Draws pictures with one bundle. The picture of a request depends on the request and the bundle alone: not
// on the other requests, the batch size or the number of threads (on the CPU, bit for bit; in bf16 for each
// set of instructions(), in fp32 for all; continuous tokens but for rounding).
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
  // In bf16 on the CPU the set of instructions that draws, on which bits depend: portable, avx2, avx512 or
  // amx. Else empty.
  std::string instructions() const;

  // Throws Error (input, usage; bundle for its own method) when a request cannot be drawn with this bundle;
  // cheap, needs no weights.
  static void check(const Manifest& manifest, const Request& request);

  // What of a caption the bundle does not know (VocabularyEntry) or does not take, in one line each; empty
  // when all is well. Needs no weights.
  std::vector<std::string> notes(const Request& request);

  // Draws all requests, `batch_size` side by side: when a picture is complete, the next request takes its
  // place, as long as methods and grids are the same and all pictures are drawn or all at temperature 0.
  // Hands over each result as soon as it and all before it are ready, in request order. Throws
  // Error(ExitCode::usage or bundle) when the method does not fit the bundle.
  void generate(const std::vector<Request>& requests, const ResultCallback& on_result,
                const ProgressCallback& on_progress = {}, const MethodOptions& method = {},
                const TurnCallback& on_turn = {});
  Result generate(const Request& request, const MethodOptions& method = {});

  // Draws what a feed has, up to `batch_size` pictures side by side, until it ends; a picture joins those in
  // work when it fits and a place is free. Errors of pictures go to the feed.
  void serve(Feed& feed, const MethodOptions& method = {});

  // Pictures from codebook indices. May be called from any thread once a picture was drawn. Throws
  // Error(ExitCode::input) when they do not fit the decoder.
  Image decode(const Codes& codes);

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace lamplighter
