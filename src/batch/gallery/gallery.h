#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "batch/record.h"

namespace lamplighter {

// What a page says about a run and its records do not.
struct GalleryFacts {
  std::string title;        // what was drawn: name of the caption file
  std::string model;        // name of the bundle
  std::size_t planned = 0;  // pictures of the whole run
};

// One HTML page, in one text that needs no network: a lazily loaded thumbnail of every picture with its
// caption, seed and step compression, a filter box, and on a click the picture with its acceptance map beside
// it; maps are coloured alike, up to the largest number of all records. Pictures are named by Record::file,
// so the page stands in the run's folder. Records come in the order of the page; failed ones are listed by
// caption and error. Equal input gives equal bytes. A picture adds its texts and at most
// about a byte a cycle.
std::string gallery_page(const GalleryFacts& facts, const std::vector<Record>& records);

}  // namespace lamplighter
