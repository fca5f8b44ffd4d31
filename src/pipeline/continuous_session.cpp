#include "pipeline/continuous_session.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <utility>

#include "lamplighter/error.h"

namespace lamplighter {

ContinuousSession::ContinuousSession(const Tools& tools, Feed& feed, FedRequest first,
                                     const Session::Calls& calls)
    : tools_(tools),
      feed_(feed),
      calls_(calls),
      kind_(first.resolved),
      waiting_(std::move(first)),
      worker_(!tools.run.target->device().is_cpu() || at::get_num_threads() > 1) {}

std::optional<FedRequest> ContinuousSession::run() {
  try {
    draw_continuous(
        tools_.run, tools_.slots, [this] { return next(); },
        [this](ContinuousPictures& pictures) {
          after_round(pictures);
          return true;
        });
    worker_.finish();
  } catch (const std::exception& error) {
    for (const auto& [picture, work] : std::exchange(work_, {})) feed_.failed(work.fed.number, told(error));
  }
  return std::move(waiting_);
}

std::optional<ContinuousRequest> ContinuousSession::next() {
  decoding_ += watch_.lap();
  const Feed::Fits fits = [this](const Request& request) {
    try {
      return calls_.resolve(request).runs_beside(kind_);
    } catch (const Error&) {
      return true;  // fails when its turn has come
    }
  };
  if (!waiting_) waiting_ = Session::take(feed_, fits, work_.empty(), calls_);
  watch_.lap();  // waiting for requests is not decoding
  if (!waiting_ || !waiting_->resolved.runs_beside(kind_)) return std::nullopt;
  const Work& work = work_[begun_++] = {std::move(*waiting_), decoding_};
  waiting_.reset();
  return to_draw(tools_.manifest, work.fed.resolved);
}

void ContinuousSession::after_round(ContinuousPictures& pictures) {
  decoding_ += watch_.lap();
  const auto ends = [&](const std::unique_ptr<ContinuousPicture>& picture) {
    Work& work = work_.at(picture->number);
    const bool wanted = feed_.is_wanted(work.fed.number);
    if (wanted)
      feed_.progress(work.fed.number, *kind_.grid, {},
                     picture->drawn - std::exchange(work.drawn, picture->drawn));
    if (wanted && picture->is_complete()) hand_over(*picture);
    if (wanted && !picture->is_complete()) return false;
    work_.erase(picture->number);
    return true;
  };
  pictures.erase(std::remove_if(pictures.begin(), pictures.end(), ends), pictures.end());
  watch_.lap();  // what others do with the news is not decoding
}

void ContinuousSession::hand_over(const ContinuousPicture& drawn) {
  const Work& work = work_.at(drawn.number);
  const auto picture = std::make_shared<ContinuousPicture>(drawn);
  picture->statistics.decode_ms = decoding_ - work.started;
  worker_.add([this, fed = work.fed, picture] {
    try {
      feed_.picture(fed.number, to_result(tools_.run, fed.resolved, *picture, tools_.paint));
    } catch (const std::exception& error) {
      feed_.failed(fed.number, told(error));
    }
  });
}

}  // namespace lamplighter
