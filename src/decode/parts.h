#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "decode/prefill.h"
#include "decode/report.h"

// Images whose given tokens do not all come first. A run decodes each part between given tokens as an image
// of its own: it begins with all tokens before it (kept.h) and is cut off where given ones follow. So a draft
// method knows nothing of parts, and tokens have the target's distribution given all that come before them.
namespace lamplighter {

class Parts {
 public:
  // `total`: tokens of an image.
  explicit Parts(std::int64_t total) : total_(total) {}

  // What begins now: the first parts of images, and then the next parts of others, those together whose
  // prompts have one length. A run numbers all of them in this order.
  std::vector<PendingImages> begin(const PendingImages& images);
  // How many parts begin next.
  std::int64_t waiting() const { return static_cast<std::int64_t>(waiting_.size()); }
  // Makes a report of parts one of images, which are numbered in the order of begin. Returns the parts that
  // are cut off.
  std::vector<std::int64_t> gather(Report& report);
  // Forgets an image and returns its part in work, -1 if there is none.
  std::int64_t drop(std::int64_t image);

 private:
  struct Part {
    std::int64_t image = 0, begin = 0, end = 0;
    bool is_reported = false;
  };
  // An image with more than one part.
  struct Whole {
    Prompts prompts;
    DecodeRequest request;  // what it keeps: all codes so far
  };

  void add(std::int64_t image, std::int64_t begin, std::int64_t end);
  bool gather(ImageReport& report, Part& part);

  std::int64_t total_;
  std::int64_t images_ = 0, parts_ = 0;  // begun
  std::map<std::int64_t, Part> work_;    // by the run's number
  std::map<std::int64_t, Whole> wholes_;
  std::vector<std::int64_t> waiting_;  // images whose next part begins
};

// The first position from `begin` on that is not given; `total` if there is none.
std::int64_t next_missing(const std::vector<std::int32_t>& kept, std::int64_t begin, std::int64_t total);
// The first position from `begin` on that is given; `total` if there is none.
std::int64_t next_given(const std::vector<std::int32_t>& kept, std::int64_t begin, std::int64_t total);
// How many are given.
std::int64_t count_given(const std::vector<std::int32_t>& kept);

}  // namespace lamplighter
