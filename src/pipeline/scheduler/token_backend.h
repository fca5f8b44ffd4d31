#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "decode/decode.h"
#include "decode/prompts.h"
#include "decode/recorder.h"
#include "pipeline/pixel_decoder.h"
#include "pipeline/scheduler/backend.h"
#include "pipeline/scheduler/candidates.h"
#include "pipeline/scheduler/prompt_reader.h"

namespace lamplighter {

// The decode loop of a method for image tokens.
class TokenBackend : public Backend {
 public:
  // All of it but the limits outlives the backend. Without a decoder images have codes alone.
  TokenBackend(const Models& models, const PromptEncoder& prompts, const PixelDecoder* decoder,
               const RuntimeOptions& options, const ResolvedRequest& first, const RunLimits& limits);

  // Without guidance an image takes half the sequences: it may run beside guided ones, not the other way
  // round.
  bool takes(const ResolvedRequest& request) const override { return shape_.guided || !request.is_guided(); }
  std::int64_t free_slots() const override;
  void begin(const std::vector<const ResolvedRequest*>& requests,
             const std::vector<PromptPointer>& upcoming) override;
  Step step() override;
  std::vector<std::int32_t> codes(std::int64_t image) override;
  void drop(std::int64_t image) override;
  CompleteImage take(std::int64_t image) override;
  void check_decoding() const override;

 private:
  void begin_candidates();
  void complete_candidate(std::int64_t number);

  const Models models_;
  const PixelDecoder* decoder_;
  const std::shared_ptr<RunMethod> run_method_;
  const Method& method_;
  const RunShape shape_;
  DecodeRun run_;
  Recorder recorder_;
  PromptReader reader_;
  PendingImages pending_;                            // begin with the next step
  std::int64_t begun_ = 0;                           // images
  std::map<std::int64_t, RegionCandidates> images_;  // not taken out yet
  std::int64_t numbers_ = 0;                         // candidates that have begun, as the run numbers them
  std::map<std::int64_t, std::int64_t> work_;  // the images of those that are neither complete nor dropped
};

// The networks of a bundle of image tokens.
class TokenNetworks : public Networks {
 public:
  // Loads the text encoder; drafters are loaded by the first method that names them. All but the target,
  // whose copies share the weights, outlives the networks. Throws Error(ExitCode::bundle).
  TokenNetworks(const Manifest& manifest, const Placement& placement, const RuntimeOptions& options,
                const PixelDecoder* decoder, Target target)
      : manifest_(manifest),
        placement_(placement),
        options_(options),
        decoder_(decoder),
        prompts_(manifest, placement),
        target_(std::move(target)) {}

  std::unique_ptr<Backend> backend(const ResolvedRequest& first, const RunLimits& limits) override;
  std::optional<TableRun> try_methods(const std::vector<ResolvedRequest>& requests) override;

 private:
  Models models(const std::string& drafter);

  const Manifest& manifest_;
  const Placement& placement_;
  const RuntimeOptions& options_;
  const PixelDecoder* decoder_;
  PromptEncoder prompts_;
  Target target_;
  std::map<std::string, DraftModel> drafters_;
};

}  // namespace lamplighter
