#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "serve/service.h"

namespace lamplighter {

// The events of one job, as OpenAI's API streams images: image_generation.partial_image and
// image_generation.completed; between them image_generation.progress when rows of tokens are complete, with
// the tokens of every cycle and whether all of them came in raster order.
class EventStream {
 public:
  // The entry of a complete image: {"b64_json": ...} or {"url": ...}.
  using Content = std::function<Json(const Request& request, const Result& result)>;

  // warnings: of the whole request; images add notes on their captions.
  EventStream(Service::Model& model, std::shared_ptr<Job> job, const ImagesWanted& wanted,
              std::vector<std::string> warnings, Content content);

  // Waits up to `most` for events to send: "" where nothing came. A job that fails ends with an event
  // "error".
  std::string next(std::chrono::milliseconds most);
  bool ended() const { return ended_; }

 private:
  struct FinishedImage {
    int rows = 0;                         // complete
    std::int64_t partial = 0;             // partial images of it that were sent
    std::vector<std::int64_t> committed;  // since the last event
  };

  std::string events_of(const JobUpdate& update);
  std::string row_events(const JobUpdate& update, FinishedImage& image);
  std::string completed_event(std::size_t index);

  Service::Model& model_;
  const std::shared_ptr<Job> job_;
  const std::int64_t partial_images_;
  const std::string kind_;  // image_generation or image_edit: what the names of events begin with
  const std::string format_;
  const std::vector<std::string> warnings_;
  const Content content_;
  std::vector<FinishedImage> images_;
  std::size_t complete_ = 0;
  bool ended_ = false;
};

}  // namespace lamplighter
