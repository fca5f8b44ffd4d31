#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lamplighter {

// A field of a form, RFC 7578.
struct FormField {
  std::string name;
  std::string_view content;
};

// The fields of a body of the type multipart/form-data. They refer to `body`. Throws HttpError.
std::vector<FormField> parse_form(std::string_view content_type, std::string_view body);

}  // namespace lamplighter
