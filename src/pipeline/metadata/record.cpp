#include "lamplighter/record.h"

#include "base/json.h"
#include "draft/options/options.h"
#include "image/acceptance_map.h"
#include "pipeline/metadata/metadata.h"
#include "pipeline/metadata/request_fields.h"

namespace lamplighter {

Request parse_request(const std::string& json) {
  const Json object = parse_json(json, "request", ExitCode::usage);
  JsonReader reader(object, "request", ExitCode::usage);
  Request request;
  request.seed = read_request_fields(reader, request).value_or(request.seed);
  if (reader.has("prompt")) check_prompt(request.prompt, "prompt");
  MethodOptions method = read_options(reader);
  if (reader.has("method")) method.method = reader.text("method");
  if (!is_same(method, MethodOptions{})) request.method = method;
  reader.finish();
  return request;
}

std::vector<OptionField> option_fields() {
  std::vector<OptionField> fields;
  for (const MethodOption& option : method_options()) {
    const auto type = static_cast<OptionField::Type>(option.field.index());
    fields.push_back({option.key, type, option.help, option.limits.choices});
  }
  return fields;
}

std::vector<std::int64_t> tokens_per_pass(const Result& result) {
  return acceptance_grid(result).committed;
}

std::string describe(const Origin& origin, const Request& request, const Result& result) {
  return to_text(describe_image(origin, request, result));
}

}  // namespace lamplighter
