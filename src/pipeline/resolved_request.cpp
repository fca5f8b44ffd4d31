#include "pipeline/resolved_request.h"

#include <string>

#include "base/json.h"
#include "base/utf8.h"
#include "draft/options/option_values.h"
#include "lamplighter/error.h"
#include "pipeline/region.h"
#include "text/cleaning.h"

namespace lamplighter {
namespace {

void check_range(bool ok, const char* key, const std::string& got, const char* expected) {
  if (!ok) throw Error(ExitCode::usage, std::string(key) + ": got " + got + ", expected " + expected);
}

// Checks a factor of logits: larger ones make them infinite.
void check_factor(const char* key, float factor) {
  check_range(factor >= 0 && factor <= 1e6F, key, number_text(factor), "a number of 0 to 1000000");
}

// Continuous tokens have no probabilities to filter. Values that filter nothing are allowed, as in the
// metadata of images.
void check_uncut(const Manifest& manifest, const Request& request) {
  if (!manifest.is_continuous()) return;
  const auto check = [&](bool ok, const char* key, auto got) {
    check_range(ok, key, std::to_string(got),
                ("none: the tokens of " + manifest.name + " are continuous").c_str());
  };
  check(request.top_k.value_or(0) == 0, "top_k", request.top_k.value_or(0));
  check(request.top_p.value_or(1) == 1, "top_p", request.top_p.value_or(1));
  check(request.cfg_interval.value_or(-1) == -1, "cfg_interval", request.cfg_interval.value_or(-1));
}

void check_class(const Manifest& manifest, const Request& request) {
  const bool by_class = manifest.prompt && manifest.prompt->kind == "class";
  if (by_class != request.class_id.has_value()) {
    throw Error(ExitCode::usage, by_class ? "class: got none, expected 0.." +
                                                std::to_string(manifest.prompt->classes - 1) +
                                                ": this bundle generates classes"
                                          : "class: got " + std::to_string(*request.class_id) +
                                                ", expected a prompt: this bundle generates captions");
  }
  if (by_class && !request.prompt.empty()) {
    throw Error(ExitCode::usage, "prompt: got " + shorten(Json(request.prompt).dump(), 60) +
                                     " beside class " + std::to_string(*request.class_id) +
                                     ", expected one of them: this bundle generates classes");
  }
  if (by_class && (*request.class_id < 0 || *request.class_id >= manifest.prompt->classes)) {
    throw Error(ExitCode::usage, "class: got " + std::to_string(*request.class_id) + ", expected 0.." +
                                     std::to_string(manifest.prompt->classes - 1));
  }
}

void check_prompt_text(const Manifest& manifest, const Request& request) {
  if (manifest.prompt && manifest.prompt->kind != "class") check_caption(request.prompt, "prompt");
  if (!request.negative_prompt) return;
  if (!manifest.prompt || !manifest.prompt->negative_text) {
    throw Error(ExitCode::usage, "negative_prompt: got " +
                                     shorten(Json(*request.negative_prompt).dump(), 60) +
                                     ", expected none: " + manifest.family + " has no negative prompts");
  }
  check_caption(*request.negative_prompt, "negative_prompt");
  if (request.negative_prompt->find('\0') != std::string::npos)
    throw Error(ExitCode::input, "negative_prompt: got a zero byte");
}

void check_codes(const Manifest& manifest, const Grid& grid, const std::vector<std::int32_t>& kept) {
  const auto count = static_cast<std::int64_t>(kept.size());
  if (manifest.is_continuous()) {
    throw Error(ExitCode::usage, "kept: got " + std::to_string(count) +
                                     " codes, expected none: the tokens of " + manifest.name +
                                     " are continuous");
  }
  if (grid.preview_tokens() > 0) {
    throw Error(ExitCode::usage, "kept: got " + std::to_string(count) + " codes, expected none: " +
                                     manifest.name + " generates a preview before the image");
  }
  for (const std::int32_t id : kept) {
    if (id >= 0 && id < manifest.tokens.codebook_size) continue;
    throw Error(ExitCode::input, "kept: got code " + std::to_string(id) + ", expected 0.." +
                                     std::to_string(manifest.tokens.codebook_size - 1));
  }
}

// What a request keeps; -1: a code that is generated.
std::vector<std::int32_t> resolve_kept(const Manifest& manifest, const Grid& grid, const Request& request) {
  if (request.kept.empty() && !request.region) return {};
  check_codes(manifest, grid, request.kept);
  if (request.region) return kept_outside(grid, *request.region, request.kept);
  const auto count = static_cast<std::int64_t>(request.kept.size());
  check_range(count < grid.tokens(), "kept", std::to_string(count) + " tokens",
              ("at most " + std::to_string(grid.tokens() - 1) + ", so that one is left to generate").c_str());
  return request.kept;
}

SamplingOptions resolve_sampling(const Manifest& manifest, const Request& request) {
  SamplingOptions sampling = manifest.sampling;
  sampling.cfg_scale = request.cfg_scale.value_or(sampling.cfg_scale);
  sampling.temperature = request.temperature.value_or(sampling.temperature);
  sampling.top_k = request.top_k.value_or(sampling.top_k);
  sampling.top_p = request.top_p.value_or(sampling.top_p);
  sampling.cfg_interval = request.cfg_interval.value_or(sampling.cfg_interval);
  return sampling;
}

}  // namespace

void check_ranges(const SamplingOptions& sampling) {
  check_factor("cfg_scale", sampling.cfg_scale);
  check_factor("temperature", sampling.temperature);
  check_range(sampling.top_k >= 0, "top_k", std::to_string(sampling.top_k), "0 (off) or more");
  check_range(sampling.cfg_interval >= -1, "cfg_interval", std::to_string(sampling.cfg_interval),
              "-1 (all) or more");
  check_range(sampling.top_p > 0 && sampling.top_p <= 1, "top_p", number_text(sampling.top_p),
              "a number in (0, 1]");
}

ResolvedRequest resolve_request(const Manifest& manifest, const Request& request) {
  ResolvedRequest resolved;
  resolved.grid = &find_grid(manifest, request.width, request.height);
  resolved.sampling = resolve_sampling(manifest, request);
  resolved.seed = request.seed;
  resolved.class_id = request.class_id;
  check_ranges(resolved.sampling);
  check_uncut(manifest, request);
  check_class(manifest, request);
  check_prompt_text(manifest, request);
  resolved.kept = resolve_kept(manifest, *resolved.grid, request);
  if (request.region) {
    resolved.candidates = request.region->candidates;
    resolved.pick = request.region->pick;
  }
  return resolved;
}

std::vector<ResolvedRequest> resolve_requests(const Manifest& manifest, const std::vector<Request>& requests,
                                              const Tokenise& tokenise) {
  std::vector<ResolvedRequest> resolved;
  resolved.reserve(requests.size());
  for (const Request& request : requests) resolved.push_back(resolve_request(manifest, request));
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const bool repeated = i > 0 && resolved[i].grid == resolved[i - 1].grid &&
                          requests[i].prompt == requests[i - 1].prompt &&
                          requests[i].negative_prompt == requests[i - 1].negative_prompt &&
                          requests[i].class_id == requests[i - 1].class_id;
    resolved[i].prompt = repeated
                             ? resolved[i - 1].prompt
                             : std::make_shared<const PromptIds>(tokenise(requests[i], *resolved[i].grid));
  }
  return resolved;
}

std::size_t count_candidates(const std::vector<ResolvedRequest>& requests, const RequestGroup& group) {
  std::size_t count = 0;
  for (std::size_t i = group.begin; i < group.end; ++i)
    count += static_cast<std::size_t>(requests[i].candidates);
  return count;
}

std::vector<RequestGroup> group_requests(const std::vector<ResolvedRequest>& requests) {
  std::vector<RequestGroup> groups;
  std::int64_t tokens = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (i == 0 || !requests[i].runs_beside(requests[i - 1])) groups.push_back({i, i, tokens, 0});
    groups.back().end = i + 1;
    tokens += requests[i].grid->tokens();
  }
  for (RequestGroup& group : groups) group.tokens_all = tokens;
  return groups;
}

}  // namespace lamplighter
