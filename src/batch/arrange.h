#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "batch/folder.h"
#include "batch/plan.h"
#include "batch/record.h"

namespace lamplighter {

// How the images of a folder fit a plan. An image belongs to a planned image of the same caption or class,
// id, image_id, own settings and run seed; its index, repeat and seed may differ.
struct Arrangement {
  std::vector<Record> records;   // of the folder, at the indices and with the names of the plan
  std::vector<Record> replaced;  // images that the plan has no use for
  std::vector<std::pair<std::string, std::string>> moves;  // files to rename: from, to
  ImageSet present;      // planned images that exist, by index and repeat of the plan
  bool extends = true;   // every record has the caption that the plan has at its index
  bool changes = false;  // whether records or files differ from the folder's
};

// `exists` says whether the image of a record is there. Records of other run seeds stay as they are.
Arrangement arrange(const Plan& plan, const std::vector<Record>& records,
                    const std::function<bool(const Record&)>& exists);

}  // namespace lamplighter
