#include "serve/stream.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "base/base64.h"
#include "base/format.h"
#include "pipeline/caption_notes.h"
#include "pipeline/output/partial_image.h"
#include "serve/answers.h"

namespace lamplighter {
namespace {

// The fields that OpenAI's clients expect of every image.
Json image_event(const std::string& type, std::size_t index, const std::string& size,
                 const std::string& format = "png") {
  return {{"type", type},      {"index", index},         {"created_at", std::time(nullptr)}, {"size", size},
          {"quality", "auto"}, {"background", "opaque"}, {"output_format", format}};
}

// What OpenAI calls images with and without one that was given.
const char* kind_of(const Job& job) {
  return job.requests().front().kept.empty() ? "image_generation" : "image_edit";
}

}  // namespace

EventStream::EventStream(Service::Model& model, std::shared_ptr<Job> job, const ImagesWanted& wanted,
                         std::vector<std::string> warnings, Content content)
    : model_(model),
      job_(std::move(job)),
      partial_images_(wanted.partial_images),
      kind_(kind_of(*job_)),
      format_(wanted.format.name),
      warnings_(std::move(warnings)),
      content_(std::move(content)),
      images_(job_->requests().size()) {}

std::string EventStream::next(std::chrono::milliseconds most) {
  std::string events;
  try {
    for (const JobUpdate& update : job_->updates(most)) events += events_of(update);
    ended_ = complete_ == images_.size();
  } catch (const Error& error) {
    events += server_event("error", openai_error(to_http_error(error)));
    ended_ = true;
  }
  return events;
}

std::string EventStream::events_of(const JobUpdate& update) {
  FinishedImage& image = images_[update.image];
  image.committed.insert(image.committed.end(), update.committed.begin(), update.committed.end());
  std::string events;
  const bool has_rows =
      update.grid != nullptr && static_cast<int>(update.codes.size()) / update.grid->columns > image.rows;
  // Candidates may follow the one that had all rows first.
  if (has_rows || (update.complete && !image.committed.empty())) events = row_events(update, image);
  return update.complete ? events + completed_event(update.image) : events;
}

std::string EventStream::row_events(const JobUpdate& update, FinishedImage& image) {
  const Grid& grid = *update.grid;
  image.rows = std::max(image.rows, static_cast<int>(update.codes.size()) / grid.columns);
  std::string events = server_event(kind_ + ".progress", {{"type", kind_ + ".progress"},
                                                          {"index", update.image},
                                                          {"rows", image.rows},
                                                          {"rows_total", grid.rows},
                                                          {"tokens", update.codes.size()},
                                                          {"tokens_total", grid.tokens()},
                                                          {"committed", std::exchange(image.committed, {})},
                                                          {"in_order", update.in_order}});
  // Partial images come at equal distances before the last row.
  const std::int64_t due = image.rows * (partial_images_ + 1) / grid.rows;
  if (due <= image.partial || image.rows == grid.rows) return events;
  image.partial = due;
  const Image part = decode_part(update.codes, grid, job_->requests()[update.image],
                                 [&](const Codes& codes) { return model_.engine.decode(codes); });
  Json event = image_event(kind_ + ".partial_image", update.image, sides(part.width, part.height));
  event["partial_image_index"] = due - 1;
  event["b64_json"] = base64(encode_png(part));
  return events + server_event(kind_ + ".partial_image", event);
}

std::string EventStream::completed_event(std::size_t index) {
  ++complete_;
  const Result& result = job_->result(index);
  const Request& request = job_->requests()[index];
  std::vector<std::string> warnings = warnings_;
  for (std::string& note : caption_notes(model_.engine.manifest(), request, result.cut))
    warnings.push_back(std::move(note));
  Json event =
      image_event(kind_ + ".completed", index, sides(result.image.width, result.image.height), format_);
  event.update(image_entry(content_(request, result), request, result, warnings));
  event["usage"] = usage_of({&result});
  return server_event(kind_ + ".completed", event);
}

}  // namespace lamplighter
