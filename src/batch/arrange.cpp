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

// What a caption says about its images.
std::string identity_of(const Record& record) {
  return Json::array({record.class_id ? Json(*record.class_id) : Json(record.caption), record.id,
                      record.image_id ? Json(*record.image_id) : Json(), own_settings(record.fields)})
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string with_seed(const std::string& identity, const Record& record) {
  return identity + " " + std::to_string(record.seed);
}

// Planned images first take the images that a new run would generate. So no image is generated that an equal
// caption has already. Then they take images of their captions by place, and by any place.
class Matcher {
 public:
  Matcher(const Plan& plan, const std::function<bool(const Record&)>& exists) : plan_(plan), exists_(exists) {
    planned_.reserve(plan.images.size() + plan.others.size());
    for (const PlannedImage& image : plan.images) add(image.record);
    for (const Record& record : plan.others) add(record);
    taken_.resize(planned_.size());
  }

  Arrangement match(const std::vector<Record>& records) {
    std::vector<const Record*> left;
    for (const Record& record : records) {
      const auto caption = captions_.find(record.index);
      if (caption == captions_.end() || caption->second != identity_of(record)) result_.extends = false;
      if (record.run_seed && *record.run_seed != plan_.options.seed) {
        names_.insert(record.file);
        result_.records.push_back(record);
      } else {
        left.push_back(&record);
      }
    }
    for (const PlannedImage& image : plan_.images) check_name(image.record);
    for (const Record& record : plan_.others) names_.insert(record.file);
    for (const Record* record : left) {
      if (!record->is_failed() && exists_(*record)) images_.insert(record);
    }
    match_each(left, [&](const Record& record) { return keep_in_place(record, true); });
    match_each(left, [&](const Record& record) { return move(record, true); });
    match_each(left, [&](const Record& record) { return keep_in_place(record, false); });
    match_each(left, [&](const Record& record) { return move(record, false); });
    for (const Record* record : left) {
      result_.changes = true;
      if (is_image(*record)) result_.replaced.push_back(*record);
    }
    return std::move(result_);
  }

 private:
  void add(const Record& record) {
    const std::string identity = identity_of(record);
    captions_.emplace(record.index, identity);
    waiting_[identity].push_back(planned_.size());
    waiting_[with_seed(identity, record)].push_back(planned_.size());
    places_[{record.index, record.repeat}] = planned_.size();
    planned_.push_back(&record);
    identities_.push_back(identity);
  }

  bool is_image(const Record& record) const { return images_.count(&record) != 0; }

  // No file may be written onto an image of another run seed.
  void check_name(const Record& wanted) {
    if (!names_.insert(wanted.file).second) {
      throw Error(ExitCode::usage, "name: " + wanted.file + " is an image of another seed, expected " +
                                       (plan_.names_seeds ? "another seed, or another folder"
                                                          : "a pattern with {index} and {seed}"));
    }
  }

  template <class F>
  static void match_each(std::vector<const Record*>& left, const F& matches) {
    left.erase(std::remove_if(left.begin(), left.end(), [&](const Record* one) { return matches(*one); }),
               left.end());
  }

  bool keep_in_place(const Record& record, bool same_seed) {
    const auto place = places_.find({record.index, record.repeat});
    if (place == places_.end() || taken_[place->second]) return false;
    if (identities_[place->second] != identity_of(record)) return false;
    if (same_seed && planned_[place->second]->seed != record.seed) return false;
    return take(record, place->second);
  }

  bool move(const Record& record, bool same_seed) {
    if (!is_image(record)) return false;
    const std::string identity = identity_of(record);
    std::deque<std::size_t>& waiting = waiting_[same_seed ? with_seed(identity, record) : identity];
    while (!waiting.empty() && taken_[waiting.front()]) waiting.pop_front();
    if (waiting.empty() || !take(record, waiting.front())) return false;
    result_.changes = true;
    return true;
  }

  // False where the name of the image would be that of another one.
  bool take(const Record& record, std::size_t planned) {
    const Record& wanted = *planned_[planned];
    Record kept = record;
    kept.index = wanted.index;
    kept.repeat = wanted.repeat;
    kept.fields = wanted.fields;
    if (is_image(record)) {
      kept.file = wanted.file;
      if (plan_.names_seeds && record.seed != wanted.seed) {
        kept.file = image_file(plan_, kept);
        if (!names_.insert(kept.file).second) return false;
      }
      result_.present.emplace(wanted.index, wanted.repeat);
      if (record.file != kept.file) result_.moves.emplace_back(record.file, kept.file);
      result_.changes |= record.file != kept.file;
    }
    taken_[planned] = true;
    result_.changes |= kept.fields != record.fields;
    result_.records.push_back(std::move(kept));
    return true;
  }

  const Plan& plan_;
  const std::function<bool(const Record&)>& exists_;
  std::vector<const Record*> planned_;
  std::vector<std::string> identities_;  // of the captions of planned images
  std::vector<bool> taken_;
  std::set<const Record*> images_;  // records whose images are there
  std::set<std::string> names_;     // of files that are planned, or have an image
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> places_;
  std::unordered_map<std::string, std::deque<std::size_t>>
      waiting_;  // planned images by identity, with and without seed
  std::unordered_map<std::size_t, std::string> captions_;  // identities by index
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
