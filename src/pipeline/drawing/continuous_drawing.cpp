#include "pipeline/drawing/continuous_drawing.h"

#include <utility>

#include "bundle/manifest/guidance.h"
#include "lamplighter/error.h"

namespace lamplighter {

ContinuousDrawing::ContinuousDrawing(const Manifest& manifest, const ContinuousRun& run,
                                     const std::vector<ResolvedRequest>& requests, const RequestGroup& group,
                                     Calls calls)
    : manifest_(manifest),
      run_(run),
      requests_(requests),
      group_(group),
      calls_(std::move(calls)),
      grid_(*requests[group.begin].grid),
      next_(group.begin) {}

void ContinuousDrawing::run(std::size_t slots) {
  draw_continuous(
      run_, static_cast<std::int64_t>(slots), [this] { return next(); },
      [this](ContinuousPictures& pictures) { return after_round(pictures); });
}

std::optional<ContinuousRequest> ContinuousDrawing::next() {
  for (; next_ < group_.end; ++next_) {
    const Turn turn = calls_.turn(next_);
    if (turn == Turn::stop) next_ = group_.end - 1;  // nothing is left behind this one
    if (turn != Turn::draw) continue;
    started_[begun_.size()] = decoding_;
    begun_.push_back(next_);
    return to_draw(manifest_, requests_[next_++]);
  }
  return std::nullopt;
}

bool ContinuousDrawing::after_round(ContinuousPictures& pictures) {
  decoding_ += watch_.lap();
  const bool go_on = tell_progress(pictures);
  for (const auto& picture : pictures) {
    if (!picture->is_complete()) continue;
    const auto image = static_cast<std::size_t>(picture->number);
    picture->statistics.decode_ms = decoding_ - started_.at(image);
    done_[image] = std::make_unique<ContinuousPicture>(*picture);
  }
  while (go_on && done_.count(handed_) != 0) hand_over(handed_++);
  watch_.lap();  // what callers do with the news is not decoding
  return go_on;
}

bool ContinuousDrawing::tell_progress(const ContinuousPictures& pictures) const {
  if (!calls_.on_progress) return true;
  Progress progress;
  for (std::size_t image = handed_; image < begun_.size(); ++image)
    progress.requests.push_back(begun_[image]);
  progress.tokens_done = static_cast<std::int64_t>(done_.size()) * grid_.tokens();
  for (const auto& picture : pictures) progress.tokens_done += picture->drawn;
  progress.tokens_total = static_cast<std::int64_t>(progress.requests.size()) * grid_.tokens();
  progress.run_done =
      group_.tokens_before + static_cast<std::int64_t>(handed_) * grid_.tokens() + progress.tokens_done;
  progress.run_total = group_.tokens_all;
  progress.grid = &grid_;
  progress.codes = [](std::size_t) { return std::vector<std::int32_t>(); };
  return calls_.on_progress(progress);
}

void ContinuousDrawing::hand_over(std::size_t image) {
  const std::unique_ptr<ContinuousPicture> picture = std::move(done_.at(image));
  done_.erase(image);
  started_.erase(image);
  calls_.on_result(begun_[image], to_result(run_, requests_[begun_[image]], *picture, calls_.paint));
}

ContinuousRequest to_draw(const Manifest& manifest, const ResolvedRequest& request) {
  const SamplingOptions& sampling = request.sampling;
  ContinuousRequest draw{*request.class_id, request.seed, sampling.temperature, {}};
  if (is_guided(sampling))
    draw.scales = guidance_scales(manifest.schedule, *request.grid, sampling, request.grid->tokens());
  return draw;
}

Result to_result(const ContinuousRun& run, const ResolvedRequest& request, const ContinuousPicture& picture,
                 const std::function<Image(const at::Tensor& latents)>& paint) {
  const Grid& grid = *request.grid;
  Result result{
      {}, {grid.rows, grid.columns, {}}, request.sampling, run.method, request.seed, "", picture.statistics};
  Stopwatch watch;
  result.image = paint(picture.latents.view({1, grid.rows, grid.columns, run.shape.channels})
                           .permute({0, 3, 1, 2})
                           .contiguous());
  result.statistics.image_ms = watch.lap();
  return result;
}

void ContinuousModels::load_target() {
  if (!target_) target_ = load_continuous_target(manifest_, placement_);
}

ContinuousRun ContinuousModels::run_of(const MethodOptions& method, const Grid& grid) {
  load_target();
  ContinuousRun run;
  run.target = target_.get();
  if (!method.drafter.empty()) {
    std::unique_ptr<ContinuousModel>& drafter = drafters_[method.drafter];
    if (!drafter) drafter = load_continuous_drafter(manifest_, method.drafter, placement_);
    run.drafter = drafter.get();
  }
  run.shape = {grid.tokens(), manifest_.tokens.channels, manifest_.diffusion.steps,
               manifest_.prompt->classes};
  run.method = method;
  return run;
}

void check_continuous(const ResolvedRequest& request, const MethodOptions& method) {
  if (!request.is_greedy() || method.rule.empty()) return;
  throw Error(ExitCode::usage, "temperature: got 0, expected more for method " + method.method +
                                   ": densities of one point have no ratio");
}

}  // namespace lamplighter
