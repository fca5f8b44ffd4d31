#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "lamplighter/options.h"

namespace lamplighter {

// Throws Error(ExitCode::input) unless a prompt is valid UTF-8 of at most kMaxCaptionBytes bytes without zero
// bytes, and more than white space. `where` names it ("prompt 2").
void check_prompt(const std::string& prompt, const std::string& where);

// Reads the fields of a request from a record: negative_prompt, class, seed, cfg_scale, temperature, top_p,
// top_k, cfg_interval, width, height, and the prompt, which the record calls `prompt_key`. Fields that are
// missing leave `request` as it is. Returns the record's seed, which the caller sets. Prompts are not
// checked. Throws what `record` throws.
std::optional<std::uint64_t> read_request_fields(JsonReader& record, Request& request,
                                                 const std::string& prompt_key = "prompt");

// The name of a field in any spelling: "Negative Prompt" and "negative-prompt" are negative_prompt.
// Characters that nobody sees, which copied tables have, are removed.
std::string field_name(std::string_view text);

// Makes 42 of 42.0, where it is exact: many languages have one kind of number.
void make_whole(Json& value);

// The number that a text is in JSON; null: it is none.
Json number_of(const std::string& text);

// Data frames write whole numbers as 42.0 and missing values as null, tables and forms numbers as texts.
// Makes integers of the first, removes the second and makes numbers of the third where a request has a
// number. `record` has names of field_name.
void normalize_numbers(Json& record);

// Whether a seed is -1, which means a random one.
bool is_random_seed(const Json& seed);

// The settings of an image among the fields of its caption's record, without the prompt: sorted, numbers as
// numbers. An empty object for other JSON.
Json own_settings(const Json& fields);

}  // namespace lamplighter
