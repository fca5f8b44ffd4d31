#include "serve/metrics.h"

#include <algorithm>

#include "base/json.h"

namespace lamplighter {
namespace {

std::string number(double value) {
  return Json(value).dump();
}

// A label with its value in quotes. JSON escapes all characters that the format requires.
std::string label(const std::string& name, const std::string& value) {
  return name + "=" + to_text(Json(value));
}

std::string head(const std::string& name, const char* kind, const char* meaning) {
  return "# HELP " + name + " " + meaning + "\n# TYPE " + name + " " + kind + "\n";
}

std::string line(const std::string& name, const std::string& labels, const std::string& value) {
  return name + "{" + labels + "} " + value + "\n";
}

}  // namespace

void Metrics::Histogram::add(double value) {
  const auto bound = std::lower_bound(kBounds.begin(), kBounds.end(), value);
  if (bound != kBounds.end()) ++counts[static_cast<std::size_t>(bound - kBounds.begin())];
  ++all;
  sum += value;
}

std::string Metrics::Histogram::text(const std::string& name, const std::string& labels) const {
  std::string text;
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < kBounds.size(); ++i) {
    below += counts[i];
    text += line(name + "_bucket", labels + "," + label("le", number(kBounds[i])), std::to_string(below));
  }
  return text + line(name + "_bucket", labels + "," + label("le", "+Inf"), std::to_string(all)) +
         line(name + "_sum", labels, number(sum)) + line(name + "_count", labels, std::to_string(all));
}

void Metrics::answered(const std::string& path, int status, double seconds) {
  const std::lock_guard lock(mutex_);
  ++answers_[{path, status}];
  seconds_[path].add(seconds);
}

void Metrics::generated(const std::string& model, const Result& result, const ImageTimes& times) {
  const Statistics& statistics = result.statistics;
  const std::lock_guard lock(mutex_);
  Totals& generated = generated_[{model, result.method.method}];
  ++generated.images;
  generated.tokens += statistics.tokens;
  generated.passes += statistics.target_passes;
  generated.waited_s.add(times.waited_s);
  generated.generated_s.add(times.generated_s);
}

std::string Metrics::text(const std::map<std::string, Gauges>& gauges) const {
  const std::string prefix = "lamplighter_";
  std::string text;
  const auto family = [&](const std::string& name, const char* kind, const char* meaning, const auto& rows,
                          const auto& row) {
    text += head(prefix + name, kind, meaning);
    for (const auto& [key, value] : rows) text += row(prefix + name, key, value);
  };
  const auto of_model = [&](auto field) {
    return [field](const std::string& name, const std::string& model, const Gauges& gauge) {
      return line(name, label("model", model), std::to_string(gauge.*field));
    };
  };
  family("queue_images", "gauge", "Images that wait for a slot.", gauges, of_model(&Gauges::waiting));
  family("images_in_work", "gauge", "Images in generation.", gauges, of_model(&Gauges::in_work));
  const std::lock_guard lock(mutex_);
  const auto labels = [](const auto& key) {
    return label("model", key.first) + "," + label("method", key.second);
  };
  const auto count = [&](auto field) {
    return [&, field](const std::string& name, const auto& key, const Totals& generated) {
      return line(name, labels(key), std::to_string(generated.*field));
    };
  };
  const auto times = [&](auto field) {
    return [&, field](const std::string& name, const auto& key, const Totals& generated) {
      return (generated.*field).text(name, labels(key));
    };
  };
  family("images_total", "counter", "Images generated.", generated_, count(&Totals::images));
  family("tokens_total", "counter", "Image tokens of these images.", generated_, count(&Totals::tokens));
  family("target_passes_total", "counter", "Target passes of these images.", generated_,
         count(&Totals::passes));
  family("step_compression", "gauge", "S: tokens per target pass.", generated_,
         [&](const std::string& name, const auto& key, const Totals& generated) {
           return line(name, labels(key),
                       number(static_cast<double>(generated.tokens) / static_cast<double>(generated.passes)));
         });
  family("queue_seconds", "histogram", "Time that images waited for a slot.", generated_,
         times(&Totals::waited_s));
  family("image_seconds", "histogram", "Time from an image's slot to its pixels.", generated_,
         times(&Totals::generated_s));
  family("requests_total", "counter", "Answers by path and status.", answers_,
         [](const std::string& name, const auto& key, std::uint64_t value) {
           return line(name, label("path", key.first) + "," + label("status", std::to_string(key.second)),
                       std::to_string(value));
         });
  family("request_seconds", "histogram", "Time to the end of an answer.", seconds_,
         [](const std::string& name, const std::string& path, const Histogram& seconds) {
           return seconds.text(name, label("path", path));
         });
  return text;
}

}  // namespace lamplighter
