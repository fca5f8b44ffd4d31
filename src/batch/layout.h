#pragma once

#include <string>
#include <vector>

#include "batch/record.h"

namespace lamplighter {

// How pictures are named, and what a scoring tool finds beside them.
struct Layout {
  const char* name;
  const char* meaning;  // one line
  const char* pattern;  // of pictures' names, see expand_name
  int repeats;          // pictures a caption that the tool expects; 0: any number
  // Makes what the tool reads besides images/ out of the run's folder and its pictures, which are in order.
  // What stands there already and is up to date stays. Null: nothing.
  void (*arrange)(const std::string& folder, const std::vector<Record>& pictures);
};

const std::vector<Layout>& layouts();
// Throws Error(ExitCode::usage).
const Layout& find_layout(const std::string& name);
std::string layout_names();  // "flat, coco, ..."

}  // namespace lamplighter
