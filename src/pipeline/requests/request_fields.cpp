#include "pipeline/requests/request_fields.h"

#include "base/lines.h"
#include "lamplighter/error.h"
#include "text/cleaning.h"

namespace lamplighter {

void check_prompt(const std::string& prompt, const std::string& where) {
  check_caption(prompt, where);
  if (prompt.find('\0') != std::string::npos) throw Error(ExitCode::input, where + ": got a zero byte");
  if (is_blank(prompt)) throw Error(ExitCode::input, where + ": the prompt is empty");
}

std::optional<std::uint64_t> read_request_fields(JsonReader& record, Request& request,
                                                 const std::string& prompt_key) {
  const auto side = [&](const char* key) { return static_cast<int>(record.integer(key, 1, 1 << 20)); };
  const auto number = [&](const char* key) { return static_cast<float>(record.number(key)); };
  std::optional<std::uint64_t> seed;
  if (record.has(prompt_key)) request.prompt = record.text(prompt_key);
  if (record.has("negative_prompt")) request.negative_prompt = record.text("negative_prompt");
  if (record.has("class")) request.class_id = record.integer("class", 0);
  if (record.has("seed")) seed = record.unsigned_integer("seed");
  if (record.has("cfg_scale")) request.cfg_scale = number("cfg_scale");
  if (record.has("temperature")) request.temperature = number("temperature");
  if (record.has("top_p")) request.top_p = number("top_p");
  if (record.has("top_k")) request.top_k = record.integer("top_k");
  if (record.has("cfg_interval")) request.cfg_interval = record.integer("cfg_interval");
  if (record.has("width")) request.width = side("width");
  if (record.has("height")) request.height = side("height");
  return seed;
}

}  // namespace lamplighter
