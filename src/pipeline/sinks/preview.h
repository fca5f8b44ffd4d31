#pragma once

#include <string>
#include <vector>

#include "lamplighter/pipeline.h"
#include "requests.h"

namespace lamplighter::cli {

// Keeps one file up to date with the pictures that are being drawn: rows of tokens that are complete, grey
// below. Several pictures stand on one sheet, where the next one takes the place of one that is finished. The
// file is replaced in one step each time.
class Preview {
 public:
  Preview(const std::string& path, TextToImage& engine, const std::vector<Job>& jobs)
      : path_(path), engine_(engine), jobs_(jobs) {}

  // Both throw Error(ExitCode::output).
  void update(const Progress& progress);
  void finish(std::size_t request, const Image& picture);

 private:
  struct Place {
    std::size_t request = 0;
    bool finished = false;
    int rows = 0, columns = 0, complete = 0;  // rows of tokens
    Image picture;
  };

  Place& place_of(std::size_t request);
  bool update(Place& place, const std::vector<std::int32_t>& ids);  // true when a row was completed
  void show() const;

  const std::string& path_;
  TextToImage& engine_;
  const std::vector<Job>& jobs_;
  std::vector<Place> places_;
};

}  // namespace lamplighter::cli
