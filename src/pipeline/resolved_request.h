#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "decode/prompt_tokenizer.h"
#include "lamplighter/bundle.h"
#include "lamplighter/options.h"
#include "pipeline/methods.h"

namespace lamplighter {

using PromptPointer = std::shared_ptr<const PromptIds>;

// A request whose open settings come from the bundle.
struct ResolvedRequest {
  const Grid* grid = nullptr;  // of the manifest
  SamplingOptions sampling;    // its own values over the bundle's
  std::uint64_t seed = 0;
  std::optional<std::int64_t> class_id = std::nullopt;
  std::vector<std::int32_t> kept = {};  // codes, raster order; -1: one that is generated
  int candidates = 1;
  std::string pick = "best";
  // Null until the prompt is tokenised. A request with the prompt of the one before it shares that one's.
  PromptPointer prompt = nullptr;
  std::shared_ptr<RunMethod> method = nullptr;  // null until Methods::set

  bool is_greedy() const { return sampling.temperature <= 0; }
  bool is_guided() const { return sampling.cfg_scale > 1; }
  // Whether both can run side by side: by one method, on the same grid, and both greedy or neither.
  bool runs_beside(const ResolvedRequest& other) const {
    return method == other.method && grid == other.grid && is_greedy() == other.is_greedy();
  }
};

// Throws Error(ExitCode::usage) for values that no token can be sampled with.
void check_ranges(const SamplingOptions& sampling);

// All but the method and the prompt's ids. Throws Error(ExitCode::usage) when the bundle cannot generate the
// request, Error(ExitCode::input) when its prompt is no caption. The manifest outlives what is resolved.
ResolvedRequest resolve_request(const Manifest& manifest, const Request& request);

using Tokenise = std::function<PromptIds(const Request& request, const Grid& grid)>;

// Resolves all requests in order, then calls `tokenise` once for every prompt that differs from the one
// before it. Throws what resolve_request and `tokenise` throw.
std::vector<ResolvedRequest> resolve_requests(const Manifest& manifest, const std::vector<Request>& requests,
                                              const Tokenise& tokenise);

// Requests begin .. end - 1, which can run side by side.
struct RequestGroup {
  std::size_t begin = 0, end = 0;
  std::int64_t tokens_before = 0, tokens_all = 0;  // image tokens of the requests before them, of all
};
// The images that are generated for the requests of a group.
std::size_t count_candidates(const std::vector<ResolvedRequest>& requests, const RequestGroup& group);
// Groups neighbours, as many as can run side by side.
std::vector<RequestGroup> group_requests(const std::vector<ResolvedRequest>& requests);

}  // namespace lamplighter
