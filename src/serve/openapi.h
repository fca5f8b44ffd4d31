#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "serve/parse.h"

namespace lamplighter {

// A path of the server's API; "/v1/models/*" has a part that is chosen.
struct ApiPath {
  std::string method, path;
};

// The fields that a body of POST /v1/images/generations may have.
const std::vector<std::string>& generation_fields();
// The fields that a body of POST /v1/images/edits may have beside them.
const std::vector<std::string>& edit_fields();

// The API in the form of OpenAPI 3.1: its paths, the fields of requests with their limits, and errors.
Json describe_api(const std::vector<ApiPath>& paths, const RequestRules& rules);

}  // namespace lamplighter
