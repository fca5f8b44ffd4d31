#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "lamplighter/sinks.h"
#include "serve/order.h"
#include "serve/queue.h"
#include "serve/refusal.h"

// What is sent back, in the forms of OpenAI's API and of the web UI's.
namespace lamplighter {

// The PNG file that `generate` writes.
std::string picture_bytes(const Origin& origin, const Request& request, const Result& result);

// {"error": {"message", "type", "param", "code"}}, as OpenAI's clients read it.
Json openai_error(const Refusal& refusal);
// {"error", "detail", "errors"}, as the web UI's clients read it.
Json webui_error(const Refusal& refusal);

// One element of "data": `content` is {"b64_json": ...} or {"url": ...}; beside it stand seed, method,
// tokens, target_passes, step_compression and seconds.
Json picture_entry(const Json& content, const Result& result);
// Sums over pictures in the place of a text model's tokens.
Json usage_of(const std::vector<const Result*>& results);

// Whether two texts are the same, in a time that depends on the length of the given one alone.
bool is_same_secret(std::string_view given, std::string_view secret);

// One event of a stream of server-sent events.
std::string server_event(const std::string& name, const Json& data);

}  // namespace lamplighter
