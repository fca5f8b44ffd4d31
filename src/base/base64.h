#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lamplighter {

// Encodes by RFC 4648, with padding.
std::string base64(std::string_view bytes);
// Decodes; the padding may be missing. Empty where the text is no base64.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace lamplighter
