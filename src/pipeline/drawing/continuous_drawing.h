#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/stopwatch.h"
#include "bundle/modules/continuous.h"
#include "continuous/loop.h"
#include "lamplighter/pipeline.h"
#include "pipeline/requests/request.h"

namespace lamplighter {

// Draws requests of one group with a bundle of continuous tokens side by side and hands their results over in
// request order.
class ContinuousDrawing {
 public:
  struct Calls {
    std::function<Image(const at::Tensor& latents)> paint;  // fp32 [1, C, rows, columns]
    const ResultCallback& on_result;
    const ProgressCallback& on_progress;
    TurnCallback turn;
  };

  // All of it outlives the drawing.
  ContinuousDrawing(const Manifest& manifest, const ContinuousRun& run,
                    const std::vector<ResolvedRequest>& requests, const RequestGroup& group, Calls calls);

  // Throws what the callbacks throw, and Error(ExitCode::interrupted) when progress is told to stop.
  void run(std::size_t slots);

 private:
  std::optional<ContinuousRequest> next();
  bool after_round(ContinuousPictures& pictures);
  bool tell_progress(const ContinuousPictures& pictures) const;
  void hand_over(std::size_t image);

  const Manifest& manifest_;
  const ContinuousRun& run_;
  const std::vector<ResolvedRequest>& requests_;
  RequestGroup group_;
  Calls calls_;
  const Grid& grid_;
  std::size_t next_;                // request whose turn has not come
  std::vector<std::size_t> begun_;  // the requests of images, in the order in which they began
  std::size_t handed_ = 0;          // images before this one are handed over
  std::map<std::size_t, std::unique_ptr<ContinuousPicture>> done_;  // by image, not handed over yet
  Stopwatch watch_;
  double decoding_ = 0;                    // milliseconds of decoding so far
  std::map<std::size_t, double> started_;  // by image, as decoding_ was
};

// A request as the loop draws it, and what is told of its picture, but for how long the decoding took.
ContinuousRequest to_draw(const Manifest& manifest, const ResolvedRequest& request);
Result to_result(const ContinuousRun& run, const ResolvedRequest& request, const ContinuousPicture& picture,
                 const std::function<Image(const at::Tensor& latents)>& paint);

// What the networks of a bundle of continuous tokens draw; they are loaded at the first use.
class ContinuousModels {
 public:
  ContinuousModels(const Manifest& manifest, const Placement& placement)
      : manifest_(manifest), placement_(placement) {}

  void load_target();
  // With these resolved options, on this grid.
  ContinuousRun run_of(const MethodOptions& method, const Grid& grid);

 private:
  const Manifest& manifest_;
  Placement placement_;
  std::unique_ptr<ContinuousModel> target_;
  std::map<std::string, std::unique_ptr<ContinuousModel>> drafters_;
};

// Throws Error(ExitCode::usage) where the sampling of a request does not suit the method.
void check_continuous(const ResolvedRequest& request, const MethodOptions& method);

}  // namespace lamplighter
