#pragma once

#include <string>
#include <vector>

#include "batch/record.h"

namespace lamplighter {

// How images are named, and which files a scoring tool needs in addition.
struct Layout {
  const char* name;
  const char* meaning;  // one line
  const char* pattern;  // of image names, see expand_name
  // Creates the additional files in the run's folder from its images in order. Files that are up to date
  // stay. Null: no additional files.
  void (*arrange)(const std::string& folder, const std::vector<Record>& images);
};

const std::vector<Layout>& layouts();
// Throws Error(ExitCode::usage).
const Layout& find_layout(const std::string& name);
std::vector<std::string> layout_names();

}  // namespace lamplighter
