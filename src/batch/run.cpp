#include "batch/run.h"

#include <algorithm>
#include <exception>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "base/format.h"
#include "base/memory.h"
#include "base/sha256.h"
#include "base/worker.h"
#include "batch/collect.h"
#include "batch/configuration.h"
#include "batch/failure.h"
#include "batch/folder.h"
#include "lamplighter/error.h"
#include "lamplighter/pipeline.h"
#include "lamplighter/sinks.h"
#include "pipeline/metadata/metadata.h"

namespace lamplighter {
namespace {

constexpr std::size_t kFailuresInARow = 8;  // more indicate a problem of the machine

// Generates a shard's images into the run's folder.
class BatchRun {
 public:
  BatchRun(const BatchOptions& options, const BatchPlan& plan, const BatchCalls& calls);
  // Throws Error(ExitCode::interrupted) when it was asked to stop before the end.
  BatchProgress generate();

 private:
  using Images = std::vector<const PlannedImage*>;
  class FolderSink;

  void generate_queue(const Images& wanted);
  void generate_all(const Images& wanted, const AdmissionCallback& admit);
  void generate_alone(const PlannedImage& image);
  void write(const PlannedImage& image, const Request& request, const Result& result);
  void finish_image(const Record& record);
  std::size_t count_present(const Images& images) const;
  // Calls the queue. When the queue is lost, running images are still completed.
  template <class F>
  void ask_queue(const F& ask);
  bool is_queue_lost();
  bool goes_on() const { return !calls_.go_on || calls_.go_on(); }
  std::size_t caption_of(const Record& record) const { return record.index - options_.plan.offset; }

  const BatchOptions& options_;
  const BatchPlan& plan_;
  const BatchCalls& calls_;
  TextToImage engine_;
  Origin origin_;
  Json configuration_;
  RunFolder folder_;
  int configuration_number_;
  std::unique_ptr<WorkQueue> queue_;
  std::exception_ptr queue_lost_;
  std::map<std::size_t, int> left_of_caption_;  // images still to finish
  std::mutex progress_lock_;
  BatchProgress progress_;
  std::size_t failures_ = 0;  // consecutive failures
  GalleryUpdates gallery_;
  Worker disk_{true};  // last, because its jobs use the other members
};

// Hands finished images to the disk thread.
class BatchRun::FolderSink : public Sink {
 public:
  FolderSink(BatchRun& run, const Images& images, std::size_t first)
      : run_(run), images_(images), first_(first) {}

  void progress(const Progress& progress) override {
    const std::lock_guard lock(run_.progress_lock_);
    run_.progress_.in_work =
        static_cast<double>(progress.tokens_done) / static_cast<double>(progress.grid->tokens());
    if (run_.calls_.progress) run_.calls_.progress(run_.progress_);
  }

  void image(std::size_t index, const Request& request, const Result& result) override {
    const PlannedImage* image = images_[first_ + index];
    finished_.insert(first_ + index);
    run_.disk_.add([&run = run_, image, request, result] {
      try {
        run.write(*image, request, result);
      } catch (const Error&) {
        throw;
      } catch (const std::exception& error) {  // retrying the image would not help
        throw Error(ExitCode::output, image->record.file + ": cannot write: " + first_line(error));
      }
    });
  }

  const std::set<std::size_t>& finished() const { return finished_; }

 private:
  BatchRun& run_;
  const Images& images_;
  std::size_t first_;
  std::set<std::size_t> finished_;
};

BatchRun::BatchRun(const BatchOptions& options, const BatchPlan& plan, const BatchCalls& calls)
    : options_(options),
      plan_(plan),
      calls_(calls),
      engine_(options.bundle, options.runtime),
      origin_(describe_origin(engine_)),
      configuration_(describe_run(options, plan.plan, engine_.manifest(), origin_)),
      folder_(options.folder, options.shard),
      configuration_number_(folder_.configure(configuration_, options.force_config, &plan.plan)) {
  if (folder_.replaced() > 0 && options.runtime.note) {
    options.runtime.note(counted(folder_.replaced(), "image") + " that this set does not ask for: moved to " +
                         options.folder + "/replaced/" + std::to_string(configuration_number_));
  }
  progress_.images = plan.part;
  progress_.present = plan.part - plan.missing.size();
  for (const std::size_t i : plan.missing) ++left_of_caption_[caption_of(plan.plan.images[i].record)];
}

BatchProgress BatchRun::generate() {
  Images wanted;
  for (const std::size_t i : plan_.missing) wanted.push_back(&plan_.plan.images[i]);
  try {
    if (!options_.queue.address.empty()) {
      generate_queue(wanted);
    } else {
      generate_all(wanted, [&](std::size_t) { return goes_on() ? Admission::generate : Admission::stop; });
    }
    disk_.finish();
  } catch (...) {
    // Finished images are collected even after a failure, unless the disk failed.
    const std::exception_ptr failure = std::current_exception();
    try {
      disk_.finish();
      collect(folder_.path());
    } catch (const std::exception&) {
    }
    std::rethrow_exception(failure);
  }
  collect(folder_.path());
  return progress_;
}

// Generates images together. After a failure, the unfinished ones are retried one by one.
void BatchRun::generate_all(const Images& wanted, const AdmissionCallback& admit) {
  std::size_t first = 0;  // the first image not yet started
  while (first < wanted.size()) {
    const std::size_t begin = first;
    std::vector<Request> requests;
    for (std::size_t i = begin; i < wanted.size(); ++i) requests.push_back(wanted[i]->request);
    std::set<std::size_t> begun;
    const AdmissionCallback asked = [&](std::size_t request) {
      const Admission answer = admit(begin + request);
      first = answer == Admission::stop ? wanted.size() : begin + request + 1;
      if (answer == Admission::generate) begun.insert(begin + request);
      return answer;
    };
    Sinks sinks;
    sinks.push_back(std::make_unique<FolderSink>(*this, wanted, begin));
    const auto& sink = static_cast<const FolderSink&>(*sinks.front());
    try {
      generate_into(sinks, engine_, requests, options_.method, {}, asked);
      return;
    } catch (const std::exception& error) {
      if (ends_run(error)) throw;
    }
    if (!sink.finished().empty()) failures_ = 0;
    // When the run failed before any image started, one is tried to see whether generation works at all.
    if (begun.size() == sink.finished().size() && first < wanted.size()) begun.insert(first++);
    for (const std::size_t i : begun) {
      if (sink.finished().count(i) == 0) generate_alone(*wanted[i]);
    }
  }
}

void BatchRun::generate_alone(const PlannedImage& image) {
  const Images alone{&image};
  for (int tried = 0;; ++tried) {
    Sinks sinks;
    sinks.push_back(std::make_unique<FolderSink>(*this, alone, 0));
    try {
      generate_into(sinks, engine_, {image.request}, options_.method);
      failures_ = 0;
      return;
    } catch (const std::exception& error) {
      if (ends_run(error)) throw;
      if (tried < options_.retries) continue;
      Record record = image.record;
      record.configuration = configuration_number_;
      record.error = first_line(error);
      disk_.add([this, record] {
        folder_.add_failed(record);
        finish_image(record);
      });
      if (++failures_ == kFailuresInARow) throw;
      return;
    }
  }
}

// Takes captions from the queue, then captions of lost processes.
void BatchRun::generate_queue(const Images& wanted) {
  if (wanted.empty()) return;  // others may have left the queue already
  queue_ =
      WorkQueue::join(options_.queue, plan_.plan.captions, Sha256::of(without_paths(configuration_).dump()),
                      [&] { return goes_on() && count_present(wanted) < wanted.size(); });
  if (queue_ == nullptr) return;
  for (std::size_t caption = 0; caption < plan_.plan.captions; ++caption) {
    if (left_of_caption_.count(caption) == 0) queue_->done(caption);
  }
  std::optional<std::size_t> given;
  ask_queue([&] { given = queue_->next(); });
  const AdmissionCallback by_queue = [&](std::size_t i) {
    const std::size_t caption = caption_of(wanted[i]->record);
    while (given && *given < caption && !is_queue_lost()) ask_queue([&] { given = queue_->next(); });
    if (!goes_on() || !given || is_queue_lost()) return Admission::stop;
    return *given == caption ? Admission::generate : Admission::skip;
  };
  generate_all(wanted, by_queue);
  disk_.finish();
  if (queue_lost_) std::rethrow_exception(queue_lost_);
  while (const auto caption = queue_->lost([&] { return goes_on(); })) {
    Images again;
    for (const PlannedImage* image : wanted) {
      if (caption_of(image->record) == *caption) again.push_back(image);
    }
    if (again.empty()) queue_->done(*caption);
    generate_all(again, [&](std::size_t) { return goes_on() ? Admission::generate : Admission::stop; });
    disk_.finish();
    if (queue_lost_) std::rethrow_exception(queue_lost_);
  }
}

template <class F>
void BatchRun::ask_queue(const F& ask) {
  try {
    ask();
  } catch (const Error&) {
    const std::lock_guard lock(progress_lock_);
    queue_lost_ = std::current_exception();
  }
}

bool BatchRun::is_queue_lost() {
  const std::lock_guard lock(progress_lock_);
  return queue_lost_ != nullptr;
}

// Counts the missing images that other processes have generated by now.
std::size_t BatchRun::count_present(const Images& images) const {
  const ImageSet present = present_images(folder_.path(), plan_.plan, false);
  return static_cast<std::size_t>(std::count_if(images.begin(), images.end(), [&](const PlannedImage* one) {
    return present.count({one->record.index, one->record.repeat}) != 0;
  }));
}

void BatchRun::write(const PlannedImage& image, const Request& request, const Result& result) {
  Record record = complete_record(image.record, result);
  record.configuration = configuration_number_;
  const std::string png = encode_png(
      result.image, options_.metadata ? image_text(describe_image(origin_, request, result)) : ImageText());
  record.bytes = png.size();
  record.sha256 = Sha256::of(png);
  folder_.add(record, png);
  finish_image(record);
}

void BatchRun::finish_image(const Record& record) {
  if (queue_ && --left_of_caption_[caption_of(record)] == 0)
    ask_queue([&] { queue_->done(caption_of(record)); });
  {
    const std::lock_guard lock(progress_lock_);
    ++(record.is_failed() ? progress_.failed : progress_.generated);
    progress_.tokens += record.tokens;
    progress_.target_passes += record.target_passes;
    progress_.cut += !record.cut.empty();
    if ((progress_.generated + progress_.failed) % kReleaseEvery == 0) release_free_memory();
    if (calls_.image) calls_.image(record, progress_);
  }
  if (options_.shard.index == 0) gallery_.update(folder_.path());
}

}  // namespace

BatchProgress run_batch(const BatchOptions& options, const BatchPlan& plan, const BatchCalls& calls) {
  BatchRun run(options, plan, calls);
  const BatchProgress progress = run.generate();
  const std::size_t stand = progress.present + progress.generated;
  const bool is_stopped = calls.go_on && !calls.go_on() && stand + progress.failed < progress.images;
  if (is_stopped) {
    throw Error(ExitCode::interrupted, "stopped with " + std::to_string(stand) + " of " +
                                           counted(progress.images, "image") +
                                           " done; the same command continues");
  }
  return progress;
}

}  // namespace lamplighter
