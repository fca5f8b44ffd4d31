#include "batch/run.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "base/memory.h"
#include "base/sha256.h"
#include "batch/collect.h"
#include "batch/configuration.h"
#include "batch/failure.h"
#include "batch/folder.h"
#include "lamplighter/error.h"
#include "lamplighter/pipeline.h"
#include "lamplighter/sinks.h"
#include "pipeline/drawing/worker.h"
#include "pipeline/requests/metadata.h"

namespace lamplighter {
namespace {

constexpr std::chrono::seconds kGalleryEvery{30};  // at least
constexpr int kGalleryShare = 20;                  // one part of the time of the disk's thread
constexpr std::size_t kFailuresInARow = 8;         // beyond them it is the machine, not the pictures

// Draws a shard's pictures into the run's folder.
class BatchRun {
 public:
  BatchRun(const BatchOptions& options, const BatchPlan& plan, const BatchCalls& calls);
  // Throws Error(ExitCode::interrupted) when it was asked to stop and there is something left.
  BatchProgress draw();

 private:
  using Pictures = std::vector<const PlannedPicture*>;
  class FolderSink;

  void draw_queue(const Pictures& wanted);
  void draw_all(const Pictures& wanted, const TurnCallback& turn);
  void draw_alone(const PlannedPicture& picture);
  void write(const PlannedPicture& picture, const Request& request, const Result& result);
  void finish_picture(const Record& record);
  std::size_t count_present(const Pictures& pictures) const;
  // Asks the queue; when it is lost, the pictures in work are completed all the same.
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
  std::map<std::size_t, int> left_of_caption_;  // pictures that are missing
  std::mutex telling_;
  BatchProgress progress_;
  std::size_t failures_ = 0;  // in a row
  std::chrono::steady_clock::time_point gallery_due_ = std::chrono::steady_clock::now() + kGalleryEvery;
  Worker disk_{true};  // last, because its jobs use the rest
};

// Gives pictures to the disk's thread.
class BatchRun::FolderSink : public Sink {
 public:
  FolderSink(BatchRun& run, const Pictures& pictures, std::size_t first)
      : run_(run), pictures_(pictures), first_(first) {}

  void progress(const Progress& progress) override {
    const std::lock_guard lock(run_.telling_);
    run_.progress_.in_work =
        static_cast<double>(progress.tokens_done) / static_cast<double>(progress.grid->tokens());
    if (run_.calls_.progress) run_.calls_.progress(run_.progress_);
  }

  void picture(std::size_t index, const Request& request, const Result& result) override {
    const PlannedPicture* picture = pictures_[first_ + index];
    finished_.insert(first_ + index);
    run_.disk_.add([&run = run_, picture, request, result] {
      try {
        run.write(*picture, request, result);
      } catch (const Error&) {
        throw;
      } catch (const std::exception& error) {  // no fault of a picture that others would do better
        throw Error(ExitCode::output, picture->record.file + ": cannot be written: " + first_line(error));
      }
    });
  }

  const std::set<std::size_t>& finished() const { return finished_; }

 private:
  BatchRun& run_;
  const Pictures& pictures_;
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
      configuration_number_(folder_.configure(configuration_, options.force_config)) {
  progress_.pictures = plan.part;
  progress_.present = plan.part - plan.missing.size();
  for (const std::size_t i : plan.missing) ++left_of_caption_[caption_of(plan.plan.pictures[i].record)];
}

BatchProgress BatchRun::draw() {
  Pictures wanted;
  for (const std::size_t i : plan_.missing) wanted.push_back(&plan_.plan.pictures[i]);
  try {
    if (!options_.queue.address.empty()) {
      draw_queue(wanted);
    } else {
      draw_all(wanted, [&](std::size_t) { return goes_on() ? Turn::draw : Turn::stop; });
    }
    disk_.finish();
  } catch (...) {
    // What stands is told all the same, unless the disk is what failed.
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

// Draws neighbours side by side; those that were in work when one failed are tried one by one.
void BatchRun::draw_all(const Pictures& wanted, const TurnCallback& turn) {
  std::size_t first = 0;  // whose turn has not come
  while (first < wanted.size()) {
    const std::size_t begin = first;
    std::vector<Request> requests;
    for (std::size_t i = begin; i < wanted.size(); ++i) requests.push_back(wanted[i]->request);
    std::set<std::size_t> begun;
    const TurnCallback asked = [&](std::size_t request) {
      const Turn answer = turn(begin + request);
      first = answer == Turn::stop ? wanted.size() : begin + request + 1;
      if (answer == Turn::draw) begun.insert(begin + request);
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
    // Where none was in work, the next one shows whether any can be drawn.
    if (begun.size() == sink.finished().size() && first < wanted.size()) begun.insert(first++);
    for (const std::size_t i : begun) {
      if (sink.finished().count(i) == 0) draw_alone(*wanted[i]);
    }
  }
}

void BatchRun::draw_alone(const PlannedPicture& picture) {
  const Pictures alone{&picture};
  for (int tried = 0;; ++tried) {
    Sinks sinks;
    sinks.push_back(std::make_unique<FolderSink>(*this, alone, 0));
    try {
      generate_into(sinks, engine_, {picture.request}, options_.method);
      failures_ = 0;
      return;
    } catch (const std::exception& error) {
      if (ends_run(error)) throw;
      if (tried < options_.retries) continue;
      Record record = picture.record;
      record.configuration = configuration_number_;
      record.error = first_line(error);
      disk_.add([this, record] {
        folder_.add_failed(record);
        finish_picture(record);
      });
      if (++failures_ == kFailuresInARow) throw;
      return;
    }
  }
}

// Captions come from the queue, and then those of processes that are lost.
void BatchRun::draw_queue(const Pictures& wanted) {
  if (wanted.empty()) return;  // others may have left the queue long ago
  queue_ =
      WorkQueue::join(options_.queue, plan_.plan.captions, Sha256::of(without_places(configuration_).dump()),
                      [&] { return goes_on() && count_present(wanted) < wanted.size(); });
  if (queue_ == nullptr) return;
  for (std::size_t caption = 0; caption < plan_.plan.captions; ++caption) {
    if (left_of_caption_.count(caption) == 0) queue_->done(caption);
  }
  std::optional<std::size_t> given;
  ask_queue([&] { given = queue_->next(); });
  const TurnCallback by_queue = [&](std::size_t i) {
    const std::size_t caption = caption_of(wanted[i]->record);
    while (given && *given < caption && !is_queue_lost()) ask_queue([&] { given = queue_->next(); });
    if (!goes_on() || !given || is_queue_lost()) return Turn::stop;
    return *given == caption ? Turn::draw : Turn::skip;
  };
  draw_all(wanted, by_queue);
  disk_.finish();
  if (queue_lost_) std::rethrow_exception(queue_lost_);
  while (const auto caption = queue_->lost([&] { return goes_on(); })) {
    Pictures again;
    for (const PlannedPicture* picture : wanted) {
      if (caption_of(picture->record) == *caption) again.push_back(picture);
    }
    if (again.empty()) queue_->done(*caption);
    draw_all(again, [&](std::size_t) { return goes_on() ? Turn::draw : Turn::stop; });
    disk_.finish();
    if (queue_lost_) std::rethrow_exception(queue_lost_);
  }
}

template <class F>
void BatchRun::ask_queue(const F& ask) {
  try {
    ask();
  } catch (const Error&) {
    const std::lock_guard lock(telling_);
    queue_lost_ = std::current_exception();
  }
}

bool BatchRun::is_queue_lost() {
  const std::lock_guard lock(telling_);
  return queue_lost_ != nullptr;
}

// Of pictures that were missing, those that other processes have drawn by now.
std::size_t BatchRun::count_present(const Pictures& pictures) const {
  const PictureSet present = present_pictures(folder_.path(), false);
  return static_cast<std::size_t>(
      std::count_if(pictures.begin(), pictures.end(), [&](const PlannedPicture* one) {
        return present.count({one->record.index, one->record.repeat}) != 0;
      }));
}

void BatchRun::write(const PlannedPicture& picture, const Request& request, const Result& result) {
  Record record = complete_record(picture.record, result);
  record.configuration = configuration_number_;
  const std::string png =
      encode_png(result.image, options_.metadata ? picture_text(describe_picture(origin_, request, result))
                                                 : PictureText());
  record.bytes = png.size();
  record.sha256 = Sha256::of(png);
  folder_.add(record, png);
  finish_picture(record);
}

void BatchRun::finish_picture(const Record& record) {
  if (queue_ && --left_of_caption_[caption_of(record)] == 0)
    ask_queue([&] { queue_->done(caption_of(record)); });
  {
    const std::lock_guard lock(telling_);
    ++(record.is_failed() ? progress_.failed : progress_.drawn);
    progress_.tokens += record.tokens;
    progress_.target_passes += record.target_passes;
    progress_.cut += !record.cut.empty();
    if ((progress_.drawn + progress_.failed) % kReleaseEvery == 0) release_free_memory();
    if (calls_.picture) calls_.picture(record, progress_);
  }
  const auto now = std::chrono::steady_clock::now();
  if (options_.shard.index != 0 || now < gallery_due_) return;
  write_gallery(folder_.path());
  const auto done = std::chrono::steady_clock::now();
  gallery_due_ = done + std::max<std::chrono::nanoseconds>(kGalleryEvery, kGalleryShare * (done - now));
}

}  // namespace

BatchProgress run_batch(const BatchOptions& options, const BatchPlan& plan, const BatchCalls& calls) {
  BatchRun run(options, plan, calls);
  const BatchProgress progress = run.draw();
  const std::size_t stand = progress.present + progress.drawn;
  const bool is_stopped = calls.go_on && !calls.go_on() && stand + progress.failed < progress.pictures;
  if (is_stopped) {
    throw Error(ExitCode::interrupted, "stopped: " + std::to_string(stand) + " of " +
                                           std::to_string(progress.pictures) +
                                           " pictures stand; the same command goes on with the rest");
  }
  return progress;
}

}  // namespace lamplighter
