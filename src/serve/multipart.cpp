#include "serve/multipart.h"

#include <algorithm>
#include <optional>

#include "base/lines.h"
#include "serve/http/request.h"
#include "serve/http_error.h"

namespace lamplighter {
namespace {

constexpr std::size_t kMostFields = 128;
constexpr std::string_view kEnd = "\r\n";
constexpr const char* kGaps = " \t";

[[noreturn]] void refuse(const std::string& why) {
  throw HttpError(400, "invalid_value", "body: " + why);
}

// The value of a parameter of a header, "a; name=value; name=\"value\"". Empty where there is none.
std::optional<std::string> parameter(std::string_view header, std::string_view wanted) {
  std::size_t at = header.find(';');
  while (at != std::string_view::npos) {
    header.remove_prefix(at + 1);
    const std::size_t equals = header.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    const std::string name = lower_case(trimmed(header.substr(0, equals), kGaps));
    header = trimmed(header.substr(equals + 1), kGaps);
    std::string value;
    if (!header.empty() && header.front() == '"') {
      std::size_t i = 1;
      for (; i < header.size() && header[i] != '"'; ++i) {
        if (header[i] == '\\' && i + 1 < header.size()) ++i;  // what follows is meant as it is
        value += header[i];
      }
      header.remove_prefix(std::min(i + 1, header.size()));
    } else {
      value = trimmed(header.substr(0, header.find(';')), kGaps);
    }
    if (name == wanted) return value;
    at = header.find(';');
  }
  return std::nullopt;
}

// One part between two boundaries: headers, an empty line, content.
FormField parse_part(std::string_view part) {
  FormField field;
  bool has_name = false;
  while (true) {
    const std::size_t end = part.find(kEnd);
    if (end == std::string_view::npos) refuse("a field of the form has no empty line behind its headers");
    const std::string_view line = part.substr(0, end);
    part.remove_prefix(end + kEnd.size());
    if (line.empty()) break;
    const std::size_t colon = line.find(':');
    if (lower_case(line.substr(0, colon)) != "content-disposition") continue;
    const std::optional<std::string> name = parameter(line, "name");
    has_name = name.has_value();
    field.name = name.value_or("");
  }
  if (!has_name) refuse("a field of the form has no name");
  field.content = part;
  return field;
}

}  // namespace

std::vector<FormField> parse_form(std::string_view content_type, std::string_view body) {
  const std::optional<std::string> boundary = parameter(content_type, "boundary");
  if (!boundary || boundary->empty() || boundary->size() > 70)
    throw HttpError(400, "invalid_value", "Content-Type: expected a boundary of 1..70 characters");
  const std::string first = "--" + *boundary, next = "\r\n" + first;
  const bool at_start = body.substr(0, first.size()) == first;
  const std::size_t at = at_start ? 0 : body.find(next);
  if (at == std::string_view::npos) refuse("got no form with the boundary that Content-Type names");
  body.remove_prefix(at + (at_start ? first.size() : next.size()));
  std::vector<FormField> fields;
  while (body.substr(0, 2) != "--") {
    const std::size_t line = body.find(kEnd);
    if (line == std::string_view::npos || !trimmed(body.substr(0, line), kGaps).empty())
      refuse("the form is damaged behind a boundary");
    body.remove_prefix(line);  // an empty part begins with the end of this line, and ends with it
    const std::size_t end = body.find(next, kEnd.size());
    if (end == std::string_view::npos) refuse("the form is cut off");
    if (fields.size() == kMostFields)
      refuse("got more than " + std::to_string(kMostFields) + " fields of a form");
    fields.push_back(parse_part(body.substr(kEnd.size(), end - kEnd.size())));
    body.remove_prefix(end + next.size());
  }
  return fields;
}

}  // namespace lamplighter
