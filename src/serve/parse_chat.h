#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lamplighter/pipeline.h"
#include "serve/parse.h"

namespace lamplighter {

// A parsed body, before its model is known.
struct ChatWanted {
  std::string model;  // name of a bundle; empty: the first
  std::string image;  // a file
  DescribeRequest request;
  MethodOptions method;
  bool stream = false, with_usage = false;  // with_usage: the stream ends with the numbers of tokens
  double deadline_s = 0;
  std::vector<std::string> unused;  // fields that change nothing here
};

// The fields of a chat's body.
const std::vector<std::string>& chat_fields();

// Body of POST /v1/chat/completions: messages with one of role user, whose content is one image as a data
// URL and texts; model, max_tokens or max_completion_tokens, temperature, top_p, top_k, seed, stream,
// stream_options, n, fit, deadline, method and its options. Throws HttpError.
ChatWanted parse_chat(std::string_view body, const RequestRules& rules);

// Throws HttpError (501) where the bundle describes no images.
void require_texts(const Manifest& manifest);

// The image with the sides that the bundle reads, and a warning where it had others. One caller at a time
// reads an image. Throws HttpError: also 501 where the bundle describes no images.
void read_chat_image(const Manifest& manifest, const RequestRules& rules, ChatWanted& wanted,
                     std::vector<std::string>& warnings);

}  // namespace lamplighter
