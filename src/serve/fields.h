#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "base/json.h"
#include "serve/http_error.h"
#include "serve/parse.h"

// What the forms of requests have in common. All throw Error.
namespace lamplighter {

inline constexpr const char* kBody = "body";

std::uint64_t random_seed();

// Comparing alone would take 2^64 - 1 for it.
bool is_minus_one(const Json& value);

// Drops fields that are null.
Json without_nulls(const Json& object);

// A seed of -1 is not given; one may be a text of digits, because JavaScript has no whole numbers above 2^53.
void read_seed_forms(Json& object);

// Makes numbers of texts that are numbers, and whole numbers of those with a fraction of zero.
void read_number_forms(Json& object, std::initializer_list<const char*> keys);

// Drops fields that are "".
void drop_empty_texts(Json& object, const std::vector<std::string>& keys);

// A file in base64, also as a data URL or in lines. `expected` names it in messages. Throws Error.
std::string read_base64(const Json& value, const char* key, const std::string& expected);

// "; did you mean X?" where a field's name is a slip of a known one: a mistake, or two in a longer name.
std::string slip_of(const std::string& key, const std::vector<std::string>& known);

void read_method(JsonReader& reader, ImagesWanted& wanted);
void read_prompt(JsonReader& reader, const RequestLimits& limits, const Request& request);
void read_deadline(JsonReader& reader, const RequestLimits& limits, ImagesWanted& wanted);

// f() with its Error as an HttpError.
template <class F>
auto with_http_errors(F f) {
  try {
    return f();
  } catch (const HttpError&) {
    throw;
  } catch (const Error& error) {
    throw to_http_error(error);
  }
}

}  // namespace lamplighter
