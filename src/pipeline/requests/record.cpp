#include "lamplighter/record.h"

#include "base/json.h"
#include "pipeline/requests/metadata.h"
#include "pipeline/requests/request_fields.h"
#include "propose/options/options.h"

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

std::string describe(const Origin& origin, const Request& request, const Result& result) {
  return to_text(describe_picture(origin, request, result));
}

}  // namespace lamplighter
