#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"

// What makes HTML pages that stand alone, of texts that anyone may have written.
namespace lamplighter {

// JSON for a script element, which nothing in it can end. Text that is no UTF-8 is replaced.
std::string script_text(const Json& json);

// Text as the content of an element or of a quoted attribute. Text that is no UTF-8 is replaced.
std::string html_text(std::string_view text);

// The bytes of a PNG file as the source of an image.
std::string png_source(std::string_view png);

// A page with texts in the place of marks, each of which it has once. What is filled in is not searched.
std::string fill_page(std::string_view page,
                      const std::vector<std::pair<std::string_view, std::string>>& texts);

}  // namespace lamplighter
