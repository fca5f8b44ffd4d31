#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"

// Builds self-contained HTML pages from untrusted text.
namespace lamplighter {

// JSON for a script element; nothing in it can end the element. Replaces invalid UTF-8.
std::string script_text(const Json& json);

// Escapes text for an element or a quoted attribute. Replaces invalid UTF-8.
std::string html_text(std::string_view text);

// Data URL of a PNG file.
std::string png_source(std::string_view png);

// Replaces marks of a page by texts. Each mark occurs once; inserted texts are not searched.
std::string fill_page(std::string_view page,
                      const std::vector<std::pair<std::string_view, std::string>>& texts);

}  // namespace lamplighter
