#include "base/create_folder.h"

#include <filesystem>
#include <system_error>

#include "lamplighter/error.h"

namespace lamplighter {

void create_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) throw Error(ExitCode::output, "cannot create folder " + path + ": " + error.message());
}

}  // namespace lamplighter
