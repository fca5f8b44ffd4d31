#include "batch/plan.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/format.h"
#include "base/sha256.h"
#include "base/utf8.h"
#include "lamplighter/error.h"
#include "pipeline/output/name_pattern.h"

namespace lamplighter {
namespace {

constexpr std::size_t kMaxImages = 1'000'000;

// Overrides values of the run with a caption's.
Request over(const Request& own, Request request) {
  const auto set = [](auto& target, const auto& value) {
    if (value) target = value;
  };
  request.prompt = own.prompt;
  request.class_id = own.class_id;
  set(request.negative_prompt, own.negative_prompt);
  set(request.cfg_scale, own.cfg_scale);
  set(request.temperature, own.temperature);
  set(request.top_p, own.top_p);
  set(request.top_k, own.top_k);
  set(request.cfg_interval, own.cfg_interval);
  if (own.width != 0) request.width = own.width;
  if (own.height != 0) request.height = own.height;
  return request;
}

bool has_seed(const std::string& pattern) {
  return pattern.find("{seed") != std::string::npos;
}

std::string pattern_of(const PlanOptions& options, const Layout& layout) {
  std::string pattern = options.name.empty() ? layout.pattern : options.name;
  const std::string ending = ".png";
  const bool ends =
      pattern.size() > ending.size() && pattern.substr(pattern.size() - ending.size()) == ending;
  if (ends) pattern.resize(pattern.size() - ending.size());
  if (options.repeats > 1 && pattern.find("{repeat") == std::string::npos && !has_seed(pattern)) {
    pattern += "_{repeat}";
  }
  if (options.is_further_seed && !has_seed(pattern)) pattern += "_{seed}";
  return pattern + ending;
}

std::string file_of(const std::string& pattern, const Record& record, const std::string& where) {
  if (!record.image_id && pattern.find("{image_id") != std::string::npos) {
    throw Error(ExitCode::input,
                where + ": image_id is missing, expected an integer, because images are named by " + pattern);
  }
  NameFields fields{{"index", std::uint64_t{record.index}},
                    {"repeat", std::uint64_t{record.repeat}},
                    {"seed", record.seed}};
  fields["id"] = !record.id.empty() ? record.id
                 : record.image_id  ? std::to_string(*record.image_id)
                                    : std::to_string(record.index);
  if (record.image_id) fields["image_id"] = static_cast<std::uint64_t>(*record.image_id);
  const std::string name = expand_name("name", pattern, fields);
  if (!is_plain_name(name)) {
    throw Error(ExitCode::input, where + ": got '" + shorten(name, 60) +
                                     "' for an image's name, expected up to 200 letters, digits, '.', '_' "
                                     "and '-', not starting with '.' or '-'");
  }
  return "images/" + name;
}

void add_images(const PlanOptions& options, const std::string& pattern, std::size_t index, Caption&& caption,
                std::vector<PlannedImage>& images) {
  const std::uint64_t first =
      caption.seed ? *caption.seed : options.seed + index * static_cast<std::uint64_t>(options.repeats);
  for (std::size_t repeat = 0; repeat < static_cast<std::size_t>(options.repeats); ++repeat) {
    PlannedImage image{over(caption.request, options.defaults), {}, caption.where};
    image.request.seed = first + repeat;
    Record& record = image.record;
    record.index = index;
    record.repeat = repeat;
    record.caption = image.request.prompt;
    record.class_id = image.request.class_id;
    record.image_id = caption.image_id;
    record.id = caption.id;
    record.fields = caption.fields;
    record.seed = image.request.seed;
    record.file = file_of(pattern, record, caption.where);
    images.push_back(std::move(image));
  }
}

// The records of captions that the run does not generate. A caption whose image cannot be named is left out.
void add_others(const PlanOptions& options, const std::string& pattern, std::size_t index, Caption&& caption,
                std::vector<Record>& others) {
  std::vector<PlannedImage> images;
  try {
    add_images(options, pattern, index, std::move(caption), images);
  } catch (const Error&) {
    return;
  }
  for (PlannedImage& image : images) others.push_back(std::move(image.record));
}

void check_names(const std::vector<PlannedImage>& images) {
  std::map<std::string, const PlannedImage*> taken;
  for (const PlannedImage& image : images) {
    const auto [other, added] = taken.emplace(image.record.file, &image);
    if (added) continue;
    throw Error(ExitCode::usage, "name: two images would be " + image.record.file + " (" +
                                     other->second->where + ", " + image.where +
                                     "), expected a pattern with {index}, or one caption per image "
                                     "(select: first, longest or random:SEED)");
  }
}

std::string digest(const std::vector<PlannedImage>& images) {
  Sha256 hash;
  for (const PlannedImage& image : images) {
    const Record& record = image.record;
    if (record.repeat != 0) continue;
    const nlohmann::json line{
        record.index, record.id,
        record.class_id ? nlohmann::json(*record.class_id) : nlohmann::json(record.caption),
        nlohmann::json(record.fields)};  // sorted by key, independent of the file's order
    hash.update(to_text(line) + "\n");
  }
  return hash.hex_digest();
}

void check_count(const PlanOptions& options, std::size_t captions) {
  if (options.repeats < 1) {
    throw Error(ExitCode::usage,
                "batch_count: got " + std::to_string(options.repeats) + ", expected 1 or more");
  }
  if (static_cast<std::size_t>(options.repeats) > kMaxImages / std::max<std::size_t>(captions, 1)) {
    throw Error(ExitCode::usage, "batch_count: got " + std::to_string(options.repeats) + " for " +
                                     counted(captions, "caption") + ", expected at most " +
                                     std::to_string(kMaxImages) + " images in all");
  }
}

}  // namespace

Plan make_plan(const PlanOptions& options) {
  Plan plan;
  plan.options = options;
  plan.layout = &find_layout(options.layout);
  if (options.limit && *options.limit == 0) throw Error(ExitCode::usage, "limit: got 0, expected 1 or more");
  std::vector<Caption> captions =
      select_captions(read_captions(options.captions, options.format, options.column), options.select);
  if (options.offset >= captions.size()) {
    throw Error(ExitCode::usage, "offset: got " + std::to_string(options.offset) + ", expected less than " +
                                     std::to_string(captions.size()) + ", the number of captions");
  }
  const std::size_t end =
      options.offset + std::min(options.limit.value_or(captions.size()), captions.size() - options.offset);
  plan.captions = end - options.offset;
  check_count(options, plan.captions);
  if (options.is_further_seed && plan.layout->arrange != nullptr) {
    throw Error(ExitCode::usage, std::string("seed: the run has images of another seed, and layout ") +
                                     plan.layout->name + " holds one seed; use another folder");
  }
  plan.pattern = pattern_of(options, *plan.layout);
  plan.names_seeds = has_seed(plan.pattern);
  for (std::size_t index = 0; index < captions.size(); ++index) {
    if (index >= options.offset && index < end) {
      add_images(options, plan.pattern, index, std::move(captions[index]), plan.images);
    } else {
      add_others(options, plan.pattern, index, std::move(captions[index]), plan.others);
    }
  }
  check_names(plan.images);
  plan.sha256 = digest(plan.images);
  return plan;
}

std::string image_file(const Plan& plan, const Record& record) {
  return file_of(plan.pattern, record, plan.options.captions);
}

}  // namespace lamplighter
