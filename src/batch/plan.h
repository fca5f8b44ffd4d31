#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "batch/captions/captions.h"
#include "batch/layout.h"
#include "batch/record.h"

namespace lamplighter {

// What a run draws.
struct PlanOptions {
  std::string captions;              // file; "-" = standard input
  std::string format = "auto";       // of read_captions
  std::string select = "all";        // of select_captions
  std::size_t offset = 0;            // captions passed over
  std::optional<std::size_t> limit;  // captions at most
  int repeats = 1;                   // pictures a caption
  std::uint64_t seed = 42;
  Request defaults;  // of what captions do not say themselves
  std::string layout = "flat";
  std::string name;  // pattern of pictures' names; empty: the layout's
};

// A picture of a run: the request, and the record that it will have apart from what drawing it shows.
struct PlannedPicture {
  Request request;
  Record record;
  std::string where;  // for messages about the request
};

struct Plan {
  PlanOptions options;
  const Layout* layout = nullptr;
  std::size_t captions = 0;              // how many there are in `pictures`
  std::vector<PlannedPicture> pictures;  // caption by caption
  std::string sha256;                    // of what the captions say, whatever file they come from
};

// Picture r of caption i of the selected ones draws with seed + i x repeats + r (a caption's own seed: + r);
// i counts what `offset` passes over, so that parts of a set are drawn like the whole. Throws Error (usage,
// input), before anything is loaded, for names that are equal or no plain file names, too.
Plan make_plan(const PlanOptions& options);

}  // namespace lamplighter
