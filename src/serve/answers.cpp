#include "serve/answers.h"

#include "base/message.h"
#include "base/utf8.h"
#include "image/formats.h"
#include "pipeline/metadata/metadata.h"

namespace lamplighter {

std::string image_bytes(const Origin& origin, const Request& request, const Result& result,
                        const ImageFormat& format) {
  const ImageText text = image_text(describe_image(origin, request, result));
  if (format.name == "webp") return encode_webp(result.image, text, format.quality.value_or(100));
  if (format.name != "jpeg") return encode_png(result.image, text);
  const int quality = format.quality.value_or(95);
  try {
    return encode_jpeg(result.image, text, quality);
  } catch (const Error& error) {
    if (error.code() != ExitCode::output) throw;
    return encode_jpeg(result.image, {}, quality);
  }
}

std::string header_text(const std::string& line) {
  constexpr std::size_t most = 500;  // bytes, before characters are escaped
  const std::string text = Json(one_line(shorten(line, most))).dump(-1, ' ', true);
  return text.substr(1, text.size() - 2);
}

Json openai_error(const HttpError& error) {
  const int status = error.status();
  const char* type = status == 401   ? "authentication_error"
                     : status == 429 ? "rate_limit_error"
                     : status >= 500 ? "server_error"
                                     : "invalid_request_error";
  return {
      {"error",
       {{"message", one_line(error.what())}, {"type", type}, {"param", nullptr}, {"code", error.word()}}}};
}

Json webui_error(const HttpError& error) {
  const std::string message = one_line(error.what());
  return {{"error", error.word()}, {"detail", message}, {"errors", message}};
}

Json image_entry(const Json& content, const Request& request, const Result& result,
                 const std::vector<std::string>& warnings) {
  Json entry = content;
  entry["seed"] = result.seed;
  entry["method"] = result.method.method;
  entry["tokens"] = result.statistics.tokens;
  entry["target_passes"] = result.statistics.target_passes;
  entry["step_compression"] = result.statistics.step_compression();
  entry["seconds"] = result.statistics.total_ms() / 1000;
  describe_kept(request, result.statistics, entry);
  if (!result.cut.empty()) entry["cut"] = result.cut;
  if (!warnings.empty()) entry["warnings"] = warnings;
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
