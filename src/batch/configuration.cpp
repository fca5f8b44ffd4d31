#include "batch/configuration.h"

#include <algorithm>

#include "draft/options/options.h"
#include "lamplighter/method.h"
#include "lamplighter/version.h"

namespace lamplighter {

Json describe_run(const BatchOptions& options, const Plan& plan, const Manifest& manifest,
                  const Origin& origin) {
  const PlanOptions& wanted = options.plan;
  const Request& request = wanted.defaults;
  Json json{{"captions", wanted.captions},  {"captions_sha256", plan.sha256},
            {"select", wanted.select},      {"offset", wanted.offset},
            {"repeats", wanted.repeats},    {"seed", wanted.seed},
            {"images", plan.images.size()}, {"layout", wanted.layout},
            {"name", wanted.name},          {"metadata", options.metadata},
            {"version", kVersion},          {"bundle", options.bundle},
            {"model", origin.model},        {"manifest_sha256", origin.manifest_sha256},
            {"device", origin.device},      {"dtype", origin.dtype}};
  const auto set = [&](const char* key, const auto& value) {
    if (value) json[key] = *value;
  };
  if (origin.cache_dtype == "int8") json["cache_dtype"] = origin.cache_dtype;
  if (!origin.instructions.empty()) json["instructions"] = origin.instructions;
  set("limit", wanted.limit);
  set("negative_prompt", request.negative_prompt);
  if (request.width != 0) json["width"] = request.width;
  if (request.height != 0) json["height"] = request.height;
  if (request.cfg_scale) json["cfg_scale"] = shortest(*request.cfg_scale);
  if (request.temperature) json["temperature"] = shortest(*request.temperature);
  if (request.top_p) json["top_p"] = shortest(*request.top_p);
  set("top_k", request.top_k);
  set("cfg_interval", request.cfg_interval);
  const MethodOptions method =
      resolve_method(options.method, manifest, origin.device, options.runtime.batch_size);
  json["method"] = method.method;
  write_options(method, json);
  if (origin.trees.count(method.tree) != 0) json["tree"] = "bundle";
  return json;
}

Record complete_record(Record record, const Result& result) {
  const Statistics& statistics = result.statistics;
  record.width = result.image.width;
  record.height = result.image.height;
  record.rows = result.codes.rows;
  record.columns = result.codes.columns;
  record.cut = result.cut;
  record.method = result.method.method;
  record.tokens = statistics.tokens;
  record.target_passes = statistics.target_passes;
  for (const Cycle& cycle : statistics.cycles) record.committed.push_back(cycle.committed);
  if (!std::is_sorted(statistics.order.begin(), statistics.order.end())) record.order = statistics.order;
  record.text_ms = statistics.text_ms;
  record.prefill_ms = statistics.prefill_ms;
  record.decode_ms = statistics.decode_ms;
  record.image_ms = statistics.image_ms;
  record.batch = statistics.batch;
  return record;
}

}  // namespace lamplighter
