#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bundle/modules/continuous.h"
#include "continuous/loop.h"
#include "pipeline/scheduler/backend.h"

namespace lamplighter {

// Rounds of a method for continuous tokens.
class ContinuousBackend : public Backend {
 public:
  // Makes pixels of latents fp32 [1, C, rows, columns].
  using Decode = std::function<Image(const at::Tensor& latents)>;

  // The manifest outlives the backend, and so do the networks of the run.
  ContinuousBackend(const Manifest& manifest, ContinuousRun run, const Grid& grid, std::int64_t slots,
                    Decode decode)
      : manifest_(manifest), run_(std::move(run)), grid_(grid), free_(slots), decode_(std::move(decode)) {}

  std::int64_t free_slots() const override { return free_; }
  void begin(const std::vector<const ResolvedRequest*>& requests,
             const std::vector<PromptPointer>& upcoming) override;
  Step step() override;
  std::vector<std::int32_t> codes(std::int64_t /*image*/) override { return {}; }
  void drop(std::int64_t image) override;
  CompleteImage take(std::int64_t image) override;

 private:
  const Manifest& manifest_;
  const ContinuousRun run_;
  const Grid& grid_;
  std::int64_t free_;
  const Decode decode_;
  std::int64_t begun_ = 0;  // images
  std::map<std::int64_t, std::unique_ptr<ContinuousImage>> images_;
};

// A request as the rounds take it.
ContinuousRequest to_continuous(const Manifest& manifest, const ResolvedRequest& request);

// The networks of a bundle of continuous tokens.
class ContinuousNetworks : public Networks {
 public:
  // Loads the target; drafters are loaded by the first method that names them. The manifest outlives the
  // networks. Throws Error(ExitCode::bundle).
  ContinuousNetworks(const Manifest& manifest, const Placement& placement,
                     ContinuousBackend::Decode decode = {})
      : manifest_(manifest),
        placement_(placement),
        target_(load_continuous_target(manifest, placement)),
        decode_(std::move(decode)) {}

  std::unique_ptr<Backend> backend(const ResolvedRequest& first, const RunLimits& limits) override;
  // With these resolved options, on this grid.
  ContinuousRun run_of(const MethodOptions& method, const Grid& grid);

 private:
  const Manifest& manifest_;
  const Placement placement_;
  const std::unique_ptr<ContinuousModel> target_;
  const ContinuousBackend::Decode decode_;
  std::map<std::string, std::unique_ptr<ContinuousModel>> drafters_;
};

}  // namespace lamplighter
