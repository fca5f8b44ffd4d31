#include "serve/stream.h"

#include <ctime>
#include <utility>

#include "base/base64.h"
#include "pipeline/outputs/rows.h"
#include "serve/answers.h"

namespace lamplighter {
namespace {

std::string size_of(int width, int height) {
  return std::to_string(width) + "x" + std::to_string(height);
}

// What OpenAI's clients expect of every picture.
Json picture_event(const std::string& type, std::size_t index, const std::string& size) {
  return {{"type", type},          {"index", index},    {"created_at", std::time(nullptr)},
          {"size", size},          {"quality", "auto"}, {"background", "opaque"},
          {"output_format", "png"}};
}

}  // namespace

EventStream::EventStream(Service::Model& model, std::shared_ptr<Order> order, std::int64_t partial_images,
                         Content content)
    : model_(model),
      order_(std::move(order)),
      partial_images_(partial_images),
      content_(std::move(content)),
      pictures_(order_->requests().size()) {}

std::string EventStream::next(std::chrono::milliseconds most) {
  std::string events;
  try {
    for (const Order::News& news : order_->news(most)) events += tell(news);
    ended_ = complete_ == pictures_.size();
  } catch (const Error& error) {
    events += server_event("error", openai_error(to_refusal(error)));
    ended_ = true;
  }
  return events;
}

std::string EventStream::tell(const Order::News& news) {
  Picture& picture = pictures_[news.picture];
  picture.committed.insert(picture.committed.end(), news.committed.begin(), news.committed.end());
  std::string events;
  if (news.grid != nullptr && static_cast<int>(news.codes.size()) / news.grid->columns > picture.rows)
    events = tell_rows(news, picture);
  return news.complete ? events + tell_complete(news.picture) : events;
}

std::string EventStream::tell_rows(const Order::News& news, Picture& picture) {
  const Grid& grid = *news.grid;
  picture.rows = static_cast<int>(news.codes.size()) / grid.columns;
  std::string events =
      server_event("image_generation.progress", {{"type", "image_generation.progress"},
                                                 {"index", news.picture},
                                                 {"rows", picture.rows},
                                                 {"rows_total", grid.rows},
                                                 {"tokens", news.codes.size()},
                                                 {"tokens_total", grid.tokens()},
                                                 {"committed", std::exchange(picture.committed, {})},
                                                 {"in_order", news.in_order}});
  // The pictures lie at equal distances before the last row.
  const std::int64_t due = picture.rows * (partial_images_ + 1) / grid.rows;
  if (due <= picture.partial || picture.rows == grid.rows) return events;
  picture.partial = due;
  const Image image = paint_rows(news.codes, grid.rows, grid.columns,
                                 [&](const Codes& codes) { return model_.engine.decode(codes); });
  Json event =
      picture_event("image_generation.partial_image", news.picture, size_of(image.width, image.height));
  event["partial_image_index"] = due - 1;
  event["b64_json"] = base64(encode_png(image));
  return events + server_event("image_generation.partial_image", event);
}

std::string EventStream::tell_complete(std::size_t index) {
  ++complete_;
  const Result& result = order_->result(index);
  Json event =
      picture_event("image_generation.completed", index, size_of(result.image.width, result.image.height));
  event.update(picture_entry(content_(order_->requests()[index], result), result));
  event["usage"] = usage_of({&result});
  return server_event("image_generation.completed", event);
}

}  // namespace lamplighter
