#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "serve/service.h"

namespace lamplighter {

// The events of one order, as OpenAI's API streams pictures: image_generation.partial_image and
// image_generation.completed; between them image_generation.progress when rows of tokens are complete, with
// the tokens of every cycle and whether all of them came in raster order.
class EventStream {
 public:
  // `content` makes of a complete picture what stands in for it, {"b64_json": ...} or {"url": ...}.
  using Content = std::function<Json(const Request& request, const Result& result)>;

  EventStream(Service::Model& model, std::shared_ptr<Order> order, std::int64_t partial_images,
              Content content);

  // What there is to send, waiting for it up to `most`: "" where nothing came. An order that fails ends with
  // an event "error".
  std::string next(std::chrono::milliseconds most);
  bool ended() const { return ended_; }

 private:
  struct Picture {
    int rows = 0;                         // complete
    std::int64_t partial = 0;             // pictures of it that were sent
    std::vector<std::int64_t> committed;  // since the last event
  };

  std::string tell(const Order::News& news);
  std::string tell_rows(const Order::News& news, Picture& picture);
  std::string tell_complete(std::size_t index);

  Service::Model& model_;
  const std::shared_ptr<Order> order_;
  const std::int64_t partial_images_;
  const Content content_;
  std::vector<Picture> pictures_;
  std::size_t complete_ = 0;
  bool ended_ = false;
};

}  // namespace lamplighter
