#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "lamplighter/options.h"

namespace lamplighter {

// A caption of a set and the fields of its record.
struct Caption {
  Request request;                       // prompt or class, and the record's fields; its seed is unused
  std::optional<std::uint64_t> seed;     // the record's own
  std::string id;                        // the record's own; empty: none
  std::optional<std::int64_t> image_id;  // image_id of COCO
  Json fields;                           // the whole record of a JSON file or table; null for plain texts
  std::string where;                     // for messages: "captions.json annotations[3]", "parti.tsv line 7"
};

// Reads captions in order from a file, from standard input ("-"), or from the .txt files of a folder: one
// caption each, with the file name as id. `format`:
//   coco      COCO's caption file: an object with `annotations` of image_id, caption and an optional id
//   json      an array of texts or of records, an object with one, or an object of ids with texts or records
//   jsonl     a record per line
//   csv, tsv  a table, its columns named by the first line; cells with separators, line ends or quotes are
//             between quotes
//   text      a caption per line
//   auto      detected from the content, also tables of Markdown; lines may be captions, records, or flags as
//             in web UIs, and markup is refused
// A record may have fields of a request (pipeline/metadata/request_fields.h), an id (or prompt_id, item_id),
// an image_id, and other fields, which are kept. Names of fields have any case. The prompt may also be called
// caption, text, and so on (find_prompt_name), or like `column`. In data sets with an image_id, width and
// height describe that image and are no request fields; with prompts, nor is class. Ids are texts or integers
// >= 0 and unique; image_ids are integers >= 0 or their digits. Texts are kept byte for byte, UTF-16 becomes
// UTF-8. Lines that begin with # are comments. Throws Error(ExitCode::input) with the position of malformed
// content, and when there is no caption; Error(ExitCode::usage) for another format.
std::vector<Caption> read_captions(const std::string& path, const std::string& format = "auto",
                                   const std::string& column = "");

// Parses the bytes of a file; `name` stands for it in messages.
std::vector<Caption> parse_captions(std::string_view bytes, const std::string& name,
                                    const std::string& format = "auto", const std::string& column = "");

// Selects one caption per image, in the order of the images' first captions: "all" (every caption), "first",
// "longest" (in code points; the first of equals, as in LANTERN's preprocess.py), or "random:SEED" (depends
// on the seed, the image_id and the number of captions of the image). Captions without an image_id are all
// kept. Throws Error(ExitCode::usage) for another rule.
std::vector<Caption> select_captions(std::vector<Caption> captions, const std::string& rule);
std::vector<std::string> select_rules();  // beside random:SEED

}  // namespace lamplighter
