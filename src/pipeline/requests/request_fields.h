#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/json.h"
#include "lamplighter/options.h"

namespace lamplighter {

// Throws Error(ExitCode::input) unless a prompt is valid UTF-8 of at most kMaxCaptionBytes bytes without zero
// bytes, and more than white space. `where` names it ("prompt 2").
void check_prompt(const std::string& prompt, const std::string& where);

// Reads what a record says about its picture: negative_prompt, class, seed, cfg_scale, temperature,
// top_p, top_k, cfg_interval, width, height, and the prompt, which the record calls `prompt_key`. What it
// does not say stays as it is in `request`. Returns the record's seed; where it goes is the caller's matter.
// Neither prompt is checked. Throws what `record` throws.
std::optional<std::uint64_t> read_request_fields(JsonReader& record, Request& request,
                                                 const std::string& prompt_key = "prompt");

}  // namespace lamplighter
