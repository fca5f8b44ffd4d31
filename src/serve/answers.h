#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "lamplighter/sinks.h"
#include "serve/http_error.h"
#include "serve/image_format.h"
#include "serve/job.h"
#include "serve/queue.h"

// Response bodies in the forms of OpenAI's API and of the web UI's.
namespace lamplighter {

// The file that `generate` writes. A JPEG file whose settings have no room in it goes without them.
std::string image_bytes(const Origin& origin, const Request& request, const Result& result,
                        const ImageFormat& format = {});

// A line for a header, in ASCII: other characters as in JSON.
std::string header_text(const std::string& line);

// {"error": {"message", "type", "param", "code"}}, as OpenAI's clients read it.
Json openai_error(const HttpError& error);
// {"error", "detail", "errors"}, as the web UI's clients read it.
Json webui_error(const HttpError& error);

// One element of "data": `content` is {"b64_json": ...} or {"url": ...}; beside it stand seed, method,
// tokens, target_passes, step_compression and seconds, what the metadata says of a kept image, and `warnings`
// where there are any.
Json image_entry(const Json& content, const Request& request, const Result& result,
                 const std::vector<std::string>& warnings);
// Sums over images, in the form of a text model's usage.
Json usage_of(const std::vector<const Result*>& results);

// Whether two texts are the same, in a time that depends on the length of the given one alone.
bool is_same_secret(std::string_view given, std::string_view secret);

// One event of a stream of server-sent events.
std::string server_event(const std::string& name, const Json& data);

}  // namespace lamplighter
