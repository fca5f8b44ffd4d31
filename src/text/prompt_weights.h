#pragma once

#include <string_view>

namespace lamplighter {

// The first part of a caption that web UIs and prompt libraries weigh; empty: none. By brackets:
// "(word:1.3)", "((word))", "[word]", "{{word}}"; by what stands behind: "word++", "(word)1.3", "(word)--",
// "word::2"; and "(\"a\", \"b\").and()". Forms that plain captions have, too, as "(word)", are none.
std::string_view find_weight(std::string_view text);

}  // namespace lamplighter
