#include "batch/arrange.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <deque>
#include <map>
#include <set>
#include <unordered_map>

#include "base/json.h"
#include "lamplighter/error.h"
#include "pipeline/metadata/request_fields.h"

namespace lamplighter {
namespace {

// What a caption says about its image, without the repeat.
std::string identity_of_caption(const Record& record) {
  return Json::array({record.class_id ? Json(*record.class_id) : Json(record.caption), record.id,
                      record.image_id ? Json(*record.image_id) : Json(), own_settings(record.fields)})
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string identity_of_image(const Record& record, bool with_seed) {
  return identity_of_caption(record) + " " + std::to_string(record.repeat) +
         (with_seed ? " " + std::to_string(record.seed) : "");
}

class Matcher {
 public:
  Matcher(const Plan& plan, const std::function<bool(const Record&)>& exists) : plan_(plan), exists_(exists) {
    planned_.reserve(plan.images.size() + plan.others.size());
    for (const PlannedImage& image : plan.images) add(image.record);
    for (const Record& record : plan.others) add(record);
    taken_.resize(planned_.size());
  }

  Arrangement match(const std::vector<Record>& records) {
    std::vector<const Record*> own;
    for (const Record& record : records) {
      const auto caption = captions_.find(record.index);
      if (caption == captions_.end() || caption->second != identity_of_caption(record))
        result_.extends = false;
      if (record.run_seed && *record.run_seed != plan_.options.seed) {
        result_.records.push_back(record);
      } else {
        own.push_back(&record);
      }
    }
    std::vector<const Record*> elsewhere;
    for (const Record* record : own) {
      if (!keep_in_place(*record)) elsewhere.push_back(record);
    }
    for (const Record* record : elsewhere) move(*record);
    return std::move(result_);
  }

 private:
  void add(const Record& record) {
    captions_.emplace(record.index, identity_of_caption(record));
    const std::string identity = identity_of_image(record, plan_.names_seeds);
    waiting_[identity].push_back(planned_.size());
    places_[{record.index, record.repeat}] = planned_.size();
    planned_.push_back(&record);
    identities_.push_back(identity);
  }

  bool keep_in_place(const Record& record) {
    const auto place = places_.find({record.index, record.repeat});
    if (place == places_.end() || identities_[place->second] != identity_of_image(record, plan_.names_seeds))
      return false;
    take(record, place->second);
    return true;
  }

  void move(const Record& record) {
    result_.changes = true;
    if (record.is_failed() || !exists_(record)) return;
    std::deque<std::size_t>& waiting = waiting_[identity_of_image(record, plan_.names_seeds)];
    while (!waiting.empty() && taken_[waiting.front()]) waiting.pop_front();
    if (waiting.empty()) {
      result_.replaced.push_back(record);
    } else {
      take(record, waiting.front());
    }
  }

  void take(const Record& record, std::size_t planned) {
    const Record& wanted = *planned_[planned];
    taken_[planned] = true;
    Record kept = record;
    kept.index = wanted.index;
    kept.fields = wanted.fields;
    result_.changes |= kept.fields != record.fields;
    if (!record.is_failed() && exists_(record)) {
      result_.present.emplace(wanted.index, wanted.repeat);
      if (record.file != wanted.file) {
        result_.moves.emplace_back(record.file, wanted.file);
        result_.changes = true;
      }
      kept.file = wanted.file;
    }
    result_.records.push_back(std::move(kept));
  }

  const Plan& plan_;
  const std::function<bool(const Record&)>& exists_;
  std::vector<const Record*> planned_;
  std::vector<std::string> identities_;  // of the planned images
  std::vector<bool> taken_;
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> places_;
  std::unordered_map<std::string, std::deque<std::size_t>> waiting_;  // planned images by identity
  std::unordered_map<std::size_t, std::string> captions_;             // identities by index
  Arrangement result_;
};

}  // namespace

Arrangement arrange(const Plan& plan, const std::vector<Record>& records,
                    const std::function<bool(const Record&)>& exists) {
  Arrangement arrangement = Matcher(plan, exists).match(records);
  // Names of captions outside the plan are not checked for duplicates: no file may be moved onto another.
  std::set<std::string> names;
  for (const Record& record : arrangement.records) {
    if (!record.is_failed() && !names.insert(record.file).second)
      throw Error(ExitCode::usage,
                  "name: two images would be " + record.file + ", expected a pattern with {index}");
  }
  return arrangement;
}

}  // namespace lamplighter
