#pragma once

#include <string>
#include <vector>

#include "lamplighter/pipeline.h"
#include "requests.h"

namespace lamplighter::cli {

// Keeps one file up to date with the pictures of the running batch: rows of tokens that are complete, grey
// below. Several pictures stand on one sheet. The file is replaced in one step each time.
class Preview {
 public:
  Preview(const std::string& path, TextToImage& engine, const std::vector<Job>& jobs)
      : path_(path), engine_(engine), jobs_(jobs) {}

  // Both throw Error(ExitCode::output).
  void update(const Progress& progress);
  void finish(std::size_t request, const Image& picture);

 private:
  void start(const Progress& progress);
  bool update(std::size_t index, const std::vector<std::int32_t>& ids);  // true when a row was completed
  void show() const;

  const std::string& path_;
  TextToImage& engine_;
  const std::vector<Job>& jobs_;
  bool started_ = false;
  std::size_t first_ = 0;    // request of the running batch
  std::int64_t looked_ = 0;  // rows' worth of tokens when last looked at
  int rows_ = 0, columns_ = 0;
  std::vector<Image> pictures_;
  std::vector<int> complete_;  // rows of each picture
};

}  // namespace lamplighter::cli
