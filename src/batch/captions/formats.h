#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "batch/captions/captions.h"

// The readers behind parse_captions. `text` is valid UTF-8 without zero bytes and byte-order mark; `name`
// stands for its file. Each throws Error(ExitCode::input) with the position; none looks at ids that come
// twice.
namespace lamplighter::captions {

std::vector<Caption> read_coco(std::string_view text, const std::string& name);
std::vector<Caption> read_array(std::string_view text, const std::string& name);
std::vector<Caption> read_json_lines(std::string_view text, const std::string& name);
std::vector<Caption> read_table(std::string_view text, const std::string& name);
std::vector<Caption> read_lines(std::string_view text, const std::string& name);

// A caption of its record, but for `fields`.
Caption read_record(const Json& record, std::string where);
Caption read_bare_text(std::string text, std::string where);

// Whether the first line that is not blank can be the head of a table: it parts columns, one of which holds
// the prompts or classes.
bool begins_table(std::string_view text);

}  // namespace lamplighter::captions
