#pragma once

#include <functional>
#include <string>
#include <vector>

#include "decode/prompts.h"
#include "device/placement.h"
#include "draft/method_table.h"

// Which lossless methods pay for a bundle on this machine, by a few seconds of measurement.
namespace lamplighter {

// What a trial runs on.
struct Trial {
  const Manifest& manifest;
  Placement placement;
  std::function<Models(const std::string& drafter)> models;  // with this drafter; "": without one
  // Images that are generated together.
  std::vector<Condition> conditions;
  std::vector<DecodeRequest> requests;
  const Grid* grid = nullptr;
};

// The baseline, and each lossless method that the bundle can run with a chain of drafts, with the length that
// is expected to be fastest. How far drafts are accepted comes from cycles of real images, their times from
// scripted cycles that take turns with the baseline's: acceptance varies from image to image by more
// than two lengths differ. The speed-up is computed from the mean acceptance minus its standard error, so
// that a chance result does not choose a method. Throws what decode() throws.
TableRun try_methods(const Trial& trial);

}  // namespace lamplighter
