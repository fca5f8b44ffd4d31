#include "base/create_folder.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "lamplighter/error.h"

namespace lamplighter {

void create_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) throw Error(ExitCode::output, "cannot create folder " + path + ": " + error.message());
}

void check_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::path existing(path);  // the folder, or the nearest above it
  while (!existing.empty() && !std::filesystem::exists(existing, error) && !error)
    existing = existing.parent_path();
  if (existing.empty()) existing = ".";
  const auto refuse = [&](const std::string& reason) {
    throw Error(ExitCode::output, "cannot write into folder " + path + ": " + reason);
  };
  if (error) refuse(error.message());
  if (!std::filesystem::is_directory(existing, error))
    refuse(existing.string() + " is a file, expected a folder");
  if (::access(existing.c_str(), W_OK | X_OK) != 0)
    refuse(existing.string() + ": " + std::system_category().message(errno));
}

}  // namespace lamplighter
