#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "lamplighter/bundle.h"
#include "lamplighter/options.h"

// Bodies of requests over HTTP as requests of the library.
namespace lamplighter {

// What one request may ask for.
struct RequestLimits {
  std::int64_t pictures = 10;
  std::size_t prompt_bytes = 8192;
  std::int64_t pixels = std::int64_t{1} << 22;  // of a picture
  double deadline_s = 600;
};

// What a body asks for, before a model is known.
struct PicturesWanted {
  std::string model;  // name of a bundle; empty: the first
  Request request;    // of the first picture; picture i draws with its seed + i
  std::int64_t count = 1;
  MethodOptions method;  // what the body says of it
  bool names_method = false;
  bool by_url = false, stream = false;
  std::int64_t partial_images = 0;  // pictures of what is complete so far, in a stream
  double deadline_s = 0;
};

// Body of POST /v1/images/generations. Fields: prompt (class for bundles of classes), model, n, size,
// response_format, stream, partial_images, user and others of OpenAI's that change nothing here; seed, the
// sampling fields (pipeline/requests/request_fields.h), method and its options, deadline (seconds). null
// stands for a field that is not given, a seed that is not given for a random one. No field names a file.
// Throws Refusal.
PicturesWanted parse_generations(std::string_view body, const RequestLimits& limits);

// Body of POST /sdapi/v1/txt2img in the form of the web UI. Fields that are unknown here change nothing, as
// there; nor does an empty negative prompt, which its clients send unasked. Throws Refusal.
PicturesWanted parse_txt2img(const Json& body, const RequestLimits& limits);

// A body as JSON. Throws Refusal.
Json parse_body(std::string_view body);

// The pictures for a bundle, `method` being that of requests which name none. Throws Refusal for what cannot
// be drawn.
std::vector<Request> requests_for(const PicturesWanted& wanted, const Manifest& manifest,
                                  const MethodOptions& method, const RequestLimits& limits);

}  // namespace lamplighter
