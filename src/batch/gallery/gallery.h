#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "batch/record.h"

namespace lamplighter {

// Facts about the run that its records do not contain.
struct GalleryFacts {
  std::string title;        // name of the caption file
  std::string model;        // name of the bundle
  std::size_t planned = 0;  // images of the whole run
};

// Builds a self-contained HTML page: lazily loaded thumbnails with caption, seed and step compression, a
// filter box, and on a click the image beside its acceptance map. All maps share one colour scale, up to the
// largest number of all records. Images are named by Record::file, relative to the run's folder. Records
// appear in the given order; failed ones are listed with caption and error. Equal input gives equal bytes. An
// image adds its texts and at most about a byte per cycle.
std::string gallery_page(const GalleryFacts& facts, const std::vector<Record>& records);

}  // namespace lamplighter
