#include "lamplighter/outputs.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <set>

#include "base/files.h"
#include "lamplighter/error.h"

namespace lamplighter {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxDigits = 20;

[[noreturn]] void reject(const std::string& pattern, const std::string& expected) {
  throw Error(ExitCode::usage, "output: got '" + pattern + "', expected " + expected);
}

bool is_figure(char c) {
  return c >= '0' && c <= '9';
}

std::string padded(std::size_t number, std::size_t width, char fill) {
  std::string digits = std::to_string(number);
  return digits.size() >= width ? digits : std::string(width - digits.size(), fill) + digits;
}

bool is_folder(const std::string& pattern) {
  std::error_code ignored;
  return (!pattern.empty() && pattern.back() == '/') || fs::is_directory(pattern, ignored);
}

// "%d" or "%04d" at `at`: appends the number and moves behind it. "%%" is a percent sign, another "%" stands
// for itself.
void expand_number(const std::string& pattern, std::size_t index, std::size_t& at, std::string& path) {
  std::size_t end = at + 1;
  while (end < pattern.size() && is_figure(pattern[end])) ++end;
  if (end < pattern.size() && pattern[end] == 'd' && end - at <= 3) {
    const std::string digits = pattern.substr(at + 1, end - at - 1);
    const std::size_t width = digits.empty() ? 0 : std::stoul(digits);
    if (width > kMaxDigits) reject(pattern, "%d or %0Nd with N up to 20");
    path += padded(index, width, !digits.empty() && digits[0] == '0' ? '0' : ' ');
    at = end + 1;
  } else {
    path += '%';
    at += pattern.compare(at, 2, "%%") == 0 ? 2 : 1;
  }
}

void expand_name(const OutputRequest& request, std::size_t& at, std::string& path) {
  const std::size_t end = request.pattern.find('}', at);
  const std::string name = end == std::string::npos ? "" : request.pattern.substr(at + 1, end - at - 1);
  if (name == "index") {
    path += std::to_string(request.index);
  } else if (name == "seed") {
    path += std::to_string(request.seed);
  } else {
    reject(request.pattern, "{index} or {seed} between braces");
  }
  at = end + 1;
}

std::string expand(const OutputRequest& request) {
  const std::string& pattern = request.pattern;
  std::string path;
  for (std::size_t at = 0; at < pattern.size();) {
    if (pattern[at] == '%') {
      expand_number(pattern, request.index, at, path);
    } else if (pattern[at] == '{') {
      expand_name(request, at, path);
    } else {
      path += pattern[at++];
    }
  }
  return path;
}

std::string numbered(const std::string& pattern) {
  const fs::path path(pattern);
  return (path.parent_path() / (path.stem().string() + "-%04d" + path.extension().string())).string();
}

}  // namespace

void check_picture_name(const std::string& what, const std::string& path) {
  std::string ending = fs::path(path).extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  static const std::set<std::string> others{".jpg", ".jpeg", ".webp", ".gif", ".bmp",
                                            ".tif", ".tiff", ".avif", ".ppm"};
  if (others.count(ending) != 0) {
    throw Error(ExitCode::usage,
                what + ": got '" + path + "', expected a name that ends in .png: pictures are PNG files");
  }
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
    if (is_folder(pattern)) {
      request.pattern = join_path(pattern, "%04d.png");
    } else if (uses[pattern] > 1 && paths_of[pattern].size() == 1) {
      request.pattern = numbered(pattern);
    }
    paths.push_back(expand(request));
    check_picture_name("output", paths.back());
    if (!taken.insert(fs::path(paths.back()).lexically_normal().string()).second) {
      reject(request.pattern, "another name for every picture: two would be " + paths.back());
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
  for (const OutputRequest& request : requests) {
    if (request.pattern.back() != '/') continue;
    std::error_code error;
    fs::create_directories(request.pattern, error);
    if (error) {
      throw Error(ExitCode::output, "cannot create folder " + request.pattern + ": " + error.message());
    }
  }
  for (const std::string& path : paths) check_output(path, overwrite);
}

}  // namespace lamplighter
