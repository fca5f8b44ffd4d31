#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "lamplighter/bundle.h"
#include "lamplighter/options.h"
#include "serve/edit.h"
#include "serve/image_format.h"

// Parses bodies of requests over HTTP.
namespace lamplighter {

inline constexpr std::size_t kMostValues = 4096;  // in the JSON of a request

// The limits of one request.
struct RequestLimits {
  std::int64_t images = 10;
  std::size_t prompt_bytes = 8192;
  std::int64_t pixels = std::int64_t{1} << 22;  // of an image
  double deadline_s = 600;
};

// Whether the guidance that programs send by themselves counts.
enum class ClientGuidance {
  automatic,  // 7, the web UI's default, does not count
  always,
  never,
};

struct RequestRules {
  RequestLimits limits;
  // Refuse what differs from what was asked for: other models, sizes, and fields that nothing here reads.
  bool strict = false;
  ClientGuidance webui_guidance = ClientGuidance::automatic;
};

// A parsed body, before its model is known.
struct ImagesWanted {
  std::string model;  // name of a bundle; empty: the first
  Request request;    // of the first image; image i has its seed + i
  std::int64_t count = 1;
  MethodOptions method;  // the fields that the body sets
  bool names_method = false;
  bool by_url = false, stream = false;
  std::int64_t partial_images = 0;  // in a stream: images of the rows that are complete so far
  double deadline_s = 0;
  ImageFormat format;
  std::string sampler;      // a method where a bundle has it, else not used
  bool is_lenient = false;  // a negative prompt and steps that a bundle does not take are not used
  bool sends_images = true;
  std::vector<std::string> unused;  // fields that change nothing here
  std::optional<EditWanted> edit;   // of an image that is given; not set: images begin anew
};

// Body of POST /v1/images/generations. Fields: prompt (class for bundles of classes), model, n, size,
// response_format, output_format, output_compression, stream, partial_images, and others of OpenAI's and of
// its imitators that change nothing here; seed, the sampling fields (pipeline/metadata/request_fields.h),
// method and its options, deadline (seconds). null and, where no text can be meant, "" stand for a field that
// is not given; a seed that is not given, or -1, for a random one. No field names a file. Throws HttpError.
ImagesWanted parse_generations(std::string_view body, const RequestRules& rules);

// Body of POST /sdapi/v1/txt2img in the form of the web UI. Fields that are unknown here change nothing, as
// there; nor does an empty negative prompt, which its clients send unasked. Throws HttpError.
ImagesWanted parse_txt2img(const Json& body, const RequestRules& rules);

// Body of POST /v1/images/edits, a form of this type: image, mask, keep_rows, keep_tokens, region, behind,
// candidates, pick, fit, and the fields of parse_generations as texts. Throws HttpError.
ImagesWanted parse_edits(std::string_view content_type, std::string_view body, const RequestRules& rules);

// Body of POST /sdapi/v1/img2img: init_images, mask, inpainting_mask_invert, resize_mode, keep_rows,
// keep_tokens, region, behind, candidates, pick, and the fields of parse_txt2img. Throws HttpError.
ImagesWanted parse_img2img(const Json& body, const RequestRules& rules);

// A body as JSON. Throws HttpError.
Json parse_body(std::string_view body);

// The requests to a bundle, and one line for everything that differs from what was asked for.
struct PlannedRequests {
  std::vector<Request> requests;
  std::vector<std::string> unused;  // fields that change nothing, also because of the bundle
  std::vector<std::string> warnings;
};
// `method` is for those that name none. Throws HttpError for what the bundle cannot generate.
PlannedRequests plan_requests(const ImagesWanted& wanted, const Manifest& manifest,
                              const MethodOptions& method, const RequestRules& rules);

// The names of fields that change nothing, the first of many, for a warning.
std::string list_of_unused(const std::vector<std::string>& unused);

// Throws Error(ExitCode::usage) for images of more pixels than `most`.
void check_pixels(const Manifest& manifest, const Request& request, std::int64_t most);

}  // namespace lamplighter
