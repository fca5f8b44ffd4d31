#include "batch/gallery/gallery.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "base/page.h"
#include "batch/gallery/gallery_html.h"
#include "image/acceptance_map.h"

namespace lamplighter {
namespace {

constexpr std::string_view kPlaceholder = "GALLERY_DATA";
constexpr std::int64_t kMostCommitted = 1024;  // larger counts are clipped in the gallery

// Encodes tokens per cycle for gallery.html: a letter per cycle, "a" for 1 token to "z" for 26, each "+"
// before it adds 26. A number after it counts equal cycles.
std::string pack(const std::vector<std::int64_t>& committed) {
  std::string text;
  for (auto at = committed.begin(); at != committed.end();) {
    const std::int64_t tokens = *at;
    const auto end = std::find_if(at, committed.end(), [&](std::int64_t other) { return other != tokens; });
    const auto alike = end - at;
    at = end;
    if (tokens < 1) continue;  // colours no cell
    const std::int64_t above = std::min(tokens, kMostCommitted) - 1;
    text += std::string(static_cast<std::size_t>(above / 26), '+') + static_cast<char>('a' + above % 26);
    if (alike > 1) text += std::to_string(alike);
  }
  return text;
}

// Collects the numbers by which users may search an image.
std::string id_of(const Record& record) {
  const std::string image = record.image_id ? std::to_string(*record.image_id) : "";
  return record.id + (record.id.empty() || image.empty() ? "" : " ") + image;
}

double rounded(double value, double steps) {
  return std::round(value * steps) / steps;
}

// The JSON data: one line per image or failure. Values that many images share stand once, in `kinds`.
class GalleryData {
 public:
  void add(const Record& record) {
    if (record.is_failed()) {
      add_line(failures_,
               Json::array({record.text(), std::to_string(record.seed), id_of(record), record.error}));
      return;
    }
    // Strings, because JavaScript rounds large numbers.
    add_line(images_, Json::array({record.file, record.text(), std::to_string(record.seed), id_of(record),
                                   kind_of(record), record.tokens, record.target_passes,
                                   rounded(record.total_ms(), 1), pack(record.committed)}));
    ++generated_;
    step_compression_ += record.step_compression();
    ms_ += record.total_ms();
    for (const std::int64_t tokens : record.committed) most_ = std::max(most_, tokens);
  }

  std::string text(const GalleryFacts& facts) const {
    Json head{{"title", facts.title}, {"model", facts.model}, {"planned", facts.planned}};
    if (generated_ > 0) {
      head["step_compression"] = rounded(step_compression_ / static_cast<double>(generated_), 1000);
      head["ms"] = rounded(ms_ / static_cast<double>(generated_), 1);
    }
    return "{\"facts\":" + script_text(head) + ",\n\"colours\":" + script_text(colours()) +
           ",\n\"kinds\":" + script_text(kinds_) + ",\n\"images\":[" + images_ + "],\n\"failures\":[" +
           failures_ + "]}";
  }

 private:
  static void add_line(std::string& lines, const Json& line) {
    lines += (lines.empty() ? "\n" : ",\n") + script_text(line);
  }

  std::size_t kind_of(const Record& record) {
    Json kind = Json::array({record.width, record.height, record.rows, record.columns, record.method});
    if (!record.order.empty()) kind.push_back(record.order);
    const auto found = std::find(kinds_.begin(), kinds_.end(), kind);
    if (found != kinds_.end()) return static_cast<std::size_t>(found - kinds_.begin());
    kinds_.push_back(std::move(kind));
    return kinds_.size() - 1;
  }

  // Colours for 1, 2, ... tokens.
  Json colours() const {
    Json list = Json::array();
    const std::int64_t most = std::min(most_, kMostCommitted);
    for (std::int64_t tokens = 1; tokens <= most; ++tokens) {
      const Colour colour = acceptance_colour(tokens, most);
      std::string text = "#";
      for (const int part : colour) {
        text += "0123456789abcdef"[part / 16];
        text += "0123456789abcdef"[part % 16];
      }
      list.push_back(text);
    }
    return list;
  }

  std::string images_, failures_;
  Json kinds_ = Json::array();
  std::size_t generated_ = 0;
  std::int64_t most_ = 1;
  double step_compression_ = 0, ms_ = 0;  // sums
};

}  // namespace

std::string gallery_page(const GalleryFacts& facts, const std::vector<Record>& records) {
  GalleryData data;
  for (const Record& record : records) data.add(record);
  return fill_page(kGalleryHtml, {{kPlaceholder, data.text(facts)}});
}

}  // namespace lamplighter
