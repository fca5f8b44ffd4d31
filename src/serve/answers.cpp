#include "serve/answers.h"

#include "pipeline/requests/metadata.h"

namespace lamplighter {

std::string picture_bytes(const Origin& origin, const Request& request, const Result& result) {
  return encode_png(result.image, picture_text(describe_picture(origin, request, result)));
}

Json openai_error(const Refusal& refusal) {
  const int status = refusal.status();
  const char* type = status == 401   ? "authentication_error"
                     : status == 429 ? "rate_limit_error"
                     : status >= 500 ? "server_error"
                                     : "invalid_request_error";
  return {
      {"error", {{"message", refusal.what()}, {"type", type}, {"param", nullptr}, {"code", refusal.word()}}}};
}

Json webui_error(const Refusal& refusal) {
  return {{"error", refusal.word()}, {"detail", refusal.what()}, {"errors", refusal.what()}};
}

Json picture_entry(const Json& content, const Result& result) {
  Json entry = content;
  entry["seed"] = result.seed;
  entry["method"] = result.method.method;
  entry["tokens"] = result.statistics.tokens;
  entry["target_passes"] = result.statistics.target_passes;
  entry["step_compression"] = result.statistics.step_compression();
  entry["seconds"] = result.statistics.total_ms() / 1000;
  if (!result.cut.empty()) entry["cut"] = result.cut;
  return entry;
}

Json usage_of(const std::vector<const Result*>& results) {
  std::int64_t tokens = 0, passes = 0;
  for (const Result* result : results) {
    tokens += result->statistics.tokens;
    passes += result->statistics.target_passes;
  }
  return {{"input_tokens", 0},
          {"input_tokens_details", {{"text_tokens", 0}, {"image_tokens", 0}}},
          {"output_tokens", tokens},
          {"total_tokens", tokens},
          {"target_passes", passes}};
}

bool is_same_secret(std::string_view given, std::string_view secret) {
  unsigned difference = given.size() == secret.size() ? 0U : 1U;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const char expected = secret.empty() ? '\0' : secret[i % secret.size()];
    difference |= static_cast<unsigned char>(given[i]) ^ static_cast<unsigned char>(expected);
  }
  return difference == 0;
}

std::string server_event(const std::string& name, const Json& data) {
  return "event: " + name + "\ndata: " + to_text(data) + "\n\n";
}

}  // namespace lamplighter
