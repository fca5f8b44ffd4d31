#include "pipeline/drawing/continuous_session.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace lamplighter {

ContinuousSession::ContinuousSession(Tools tools, Feed& feed, FedRequest first, const Calls& calls)
    : FeedSession(feed, std::move(first), calls,
                  !tools.run.target->device().is_cpu() || at::get_num_threads() > 1),
      tools_(std::move(tools)) {}

void ContinuousSession::draw() {
  draw_continuous(
      tools_.run, tools_.slots, [this] { return next(); },
      [this](ContinuousPictures& pictures) {
        after_round(pictures);
        return true;
      },
      Damage::is_left);
}

std::optional<ContinuousRequest> ContinuousSession::next() {
  decoding_ += watch_.lap();
  const Work* work = begin();
  watch_.lap();  // waiting for requests is not decoding
  if (work == nullptr) return std::nullopt;
  return to_draw(tools_.manifest, work->fed.resolved);
}

void ContinuousSession::after_round(ContinuousPictures& pictures) {
  decoding_ += watch_.lap();
  const auto ends = [&](const std::unique_ptr<ContinuousPicture>& picture) {
    Work& work = work_.at(picture->number);
    if (picture->damaged) fail(work, damaged_target());
    const bool wanted = !work.failed && feed_.is_wanted(work.fed.number);
    if (wanted)
      feed_.progress(work.fed.number, *kind_.grid, {},
                     picture->drawn - std::exchange(work.drawn, picture->drawn));
    if (wanted && picture->is_complete()) complete(*picture);
    if (wanted && !picture->is_complete()) return false;
    work_.erase(picture->number);
    return true;
  };
  pictures.erase(std::remove_if(pictures.begin(), pictures.end(), ends), pictures.end());
  watch_.lap();  // what others do with the news is not decoding
}

void ContinuousSession::complete(const ContinuousPicture& drawn) {
  const Work& work = work_.at(drawn.number);
  const auto picture = std::make_shared<ContinuousPicture>(drawn);
  picture->statistics.decode_ms = decoding_ - work.started;
  hand_over(work.fed.number, [this, resolved = work.fed.resolved, picture] {
    return to_result(tools_.run, resolved, *picture, tools_.paint);
  });
}

}  // namespace lamplighter
