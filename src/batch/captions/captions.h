#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "lamplighter/options.h"

namespace lamplighter {

// A caption of a set, with what its file says about its pictures.
struct Caption {
  Request request;                       // prompt or class, and fields of its own; the seed is not used
  std::optional<std::uint64_t> seed;     // of its own
  std::string id;                        // of its own; empty: none
  std::optional<std::int64_t> image_id;  // COCO's picture that the caption describes
  Json fields;                           // its record in JSON or a table as it was written; else null
  std::string where;                     // for messages: "captions.json annotations[3]", "parti.tsv line 7"
};

// Captions of a file, or of standard input for "-", in its order; or of the .txt files of a folder, which are
// a caption each with their name as id. `format`:
//   coco   COCO's caption file: an object with `annotations` of image_id, caption and maybe id
//   json   an array of texts or of records
//   jsonl  a record a line
//   tsv    columns parted by tabulators, named by the first line in either case; nothing is quoted
//   text   a caption a line
//   auto   what the content looks like
// A record has fields of a request (pipeline/requests/request_fields.h), an id (or prompt_id, item_id), an
// image_id, and others, which say nothing here; its prompt may also be called caption or text, in this order.
// Where a table has a column image_id, its width and height are that image's and not the request's. Ids are
// texts or integers from 0, and an id stands for one caption; image_ids are integers from 0 or their digits.
// Texts are kept byte for byte. Throws Error(ExitCode::input) with the position of what is malformed, and
// where there is no caption; Error(ExitCode::usage) for another format.
std::vector<Caption> read_captions(const std::string& path, const std::string& format = "auto");

// The same for the bytes of a file; `name` stands for it in messages.
std::vector<Caption> parse_captions(std::string_view bytes, const std::string& name,
                                    const std::string& format = "auto");

// One caption an image, in the order in which images come first: "all" (every caption), "first", "longest"
// (in code points; the first of equal ones, as LANTERN's preprocess.py selects), or "random:SEED", which
// depends on the seed, the image_id and how many captions the image has. Captions without an image_id are all
// kept. Throws Error(ExitCode::usage) for another rule.
std::vector<Caption> select_captions(std::vector<Caption> captions, const std::string& rule);

}  // namespace lamplighter
