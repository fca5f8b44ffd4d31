#include "lamplighter/outputs.h"

#include <filesystem>
#include <map>
#include <set>

#include "base/create_folder.h"
#include "base/files.h"
#include "base/message.h"
#include "lamplighter/error.h"
#include "lamplighter/image.h"
#include "pipeline/output/name_pattern.h"

namespace lamplighter {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void reject(const std::string& pattern, const std::string& expected) {
  throw Error(ExitCode::usage, "output: got " + quote(pattern) + ", expected " + expected);
}

bool is_folder(const std::string& pattern) {
  std::error_code ignored;
  return (!pattern.empty() && pattern.back() == '/') || fs::is_directory(pattern, ignored);
}

// A folder's own name is no pattern.
std::string expand(const OutputRequest& request) {
  const bool folder = is_folder(request.pattern);
  const std::string name = expand_name("output", folder ? "%04d.png" : request.pattern,
                                       {{"index", std::uint64_t{request.index}},
                                        {"seed", std::uint64_t{request.seed}},
                                        {"prompt", name_of_caption(request.prompt)}});
  return folder ? join_path(request.pattern, name) : name;
}

// Makes names of one pattern distinct: a number before the ending; a name without an ending becomes a folder.
std::string numbered(const std::string& pattern) {
  const fs::path path(pattern);
  if (path.extension().empty() && pattern.find_first_of("%{") == std::string::npos) return pattern + "/";
  return (path.parent_path() / (path.stem().string() + "-%04d" + path.extension().string())).string();
}

}  // namespace

void check_image_name(const std::string& what, const std::string& path) {
  const std::string expected = refuse_image_name(path);
  if (!expected.empty())
    throw Error(ExitCode::usage, what + ": got " + quote(path) + ", expected " + expected);
}

bool is_numbered(const std::string& pattern) {
  return !pattern.empty() && expand({pattern, 0}) != expand({pattern, 1});
}

std::vector<std::string> expand_outputs(const std::vector<OutputRequest>& requests) {
  std::map<std::string, std::set<std::string>> paths_of;  // distinct paths of a pattern
  std::map<std::string, std::size_t> uses;
  for (const OutputRequest& request : requests) {
    if (request.pattern.empty()) reject("", "a file name, a pattern or a folder");
    if (is_folder(request.pattern)) continue;
    paths_of[request.pattern].insert(expand(request));
    ++uses[request.pattern];
  }
  std::vector<std::string> paths;
  std::set<std::string> taken;
  for (OutputRequest request : requests) {
    const std::string& pattern = request.pattern;
    if (pattern == "-" && requests.size() > 1) reject("-", "one image for standard output");
    if (uses[pattern] > paths_of[pattern].size()) request.pattern = numbered(pattern);
    paths.push_back(expand(request));
    check_image_name("output", paths.back());
    if (!taken.insert(fs::path(paths.back()).lexically_normal().string()).second) {
      reject(request.pattern, "another name for every image: two would be " + paths.back());
    }
  }
  return paths;
}

void check_distinct(const std::vector<std::string>& paths) {
  std::set<std::string> taken;
  for (const std::string& path : paths) {
    if (!taken.insert(fs::path(path).lexically_normal().string()).second)
      throw Error(ExitCode::usage, "every file needs a name of its own: got " + path + " twice");
  }
}

void prepare_outputs(const std::vector<OutputRequest>& requests, const std::vector<std::string>& paths,
                     bool overwrite) {
  for (std::size_t i = 0; i < requests.size(); ++i) {
    std::string folder = requests[i].pattern;
    if (folder.back() != '/') folder += '/';
    if (paths[i].rfind(folder, 0) != 0) continue;
    create_folder(folder);
  }
  std::set<std::string> folders;
  for (const std::string& path : paths) {
    check_output(path, overwrite);
    folders.insert(fs::path(path).parent_path().string());
  }
  for (const std::string& folder : folders) remove_leftovers(folder.empty() ? "." : folder);
}

}  // namespace lamplighter
