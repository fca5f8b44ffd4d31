#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "lamplighter/api.h"
#include "lamplighter/image.h"
#include "lamplighter/options.h"
#include "lamplighter/pipeline.h"

namespace lamplighter {

// Makes something of pictures while they are drawn, a file most often. Calls come one at a time, not all of
// them from one thread.
class LAMPLIGHTER_API Sink {
 public:
  virtual ~Sink() = default;
  // How far the pictures in work are.
  virtual void progress(const Progress& /*progress*/) {}
  // Picture `index` of the run is complete; they come in the order of the requests.
  virtual void picture(std::size_t index, const Request& request, const Result& result) = 0;
  // All pictures are complete.
  virtual void done() {}
  // The run ends early, by a stop or an error: no more pictures come. What is thrown here is dropped.
  virtual void stopped() {}
};
using Sinks = std::vector<std::unique_ptr<Sink>>;

// Draws the requests and gives what comes of it to every sink, in their order. `go_on` is asked after every
// cycle and every picture; when it says no, Error(ExitCode::interrupted) is thrown. `turn` as for
// TextToImage::generate. Throws what the sinks and TextToImage::generate throw, after all sinks were told.
LAMPLIGHTER_API void generate_into(const Sinks& sinks, TextToImage& engine,
                                   const std::vector<Request>& requests, const MethodOptions& method = {},
                                   const std::function<bool()>& go_on = {}, const TurnCallback& turn = {});

// What drew a run's pictures.
struct Origin {
  std::string model;            // name of the bundle
  std::string manifest_sha256;  // of manifest.json, which names every other file by its checksum
  std::string device, dtype;    // cpu or cuda; fp32, bf16, int8, int4 or fp16
  std::string cache_dtype;      // fp32, bf16, fp16 or int8
  std::string instructions;     // of TextToImage
  std::set<std::string> trees;  // tree files of the bundle
};
LAMPLIGHTER_API Origin describe_origin(const TextToImage& engine);

// The sinks there are; pictures are of the kind that their names end in (write_picture). All throw
// Error(ExitCode::output) for files that cannot be written, without `overwrite` also for those that exist by
// then. Those that write one file about all pictures write it about the complete ones when a run is stopped.

// Picture i as the file paths[i], which carries what drew it unless `text` is false.
LAMPLIGHTER_API std::unique_ptr<Sink> picture_sink(Origin origin, std::vector<std::string> paths,
                                                   bool text = true, bool overwrite = true);

// All pictures on one sheet.
LAMPLIGHTER_API std::unique_ptr<Sink> sheet_sink(std::string path, bool overwrite = true);

// All pictures as image tokens with what drew them, a file for `lamplighter decode`.
LAMPLIGHTER_API std::unique_ptr<Sink> codes_sink(Origin origin, std::string path, bool overwrite = true);

// Every cycle of every picture as a JSON line: picture, cycle (from 0), first (index of the first token
// committed), committed, accepted (drafted tokens, also those past the last token of the picture: there
// `committed` is less than one more), ms by stage. Before a picture's cycles a line with its settings, what
// its PNG file says.
LAMPLIGHTER_API std::unique_ptr<Sink> trace_sink(Origin origin, std::string path, bool overwrite = true);

// The pictures beside their tokens, coloured by how many came at once, with the method and its tokens per
// target pass in words.
LAMPLIGHTER_API std::unique_ptr<Sink> acceptance_map_sink(std::string path, bool overwrite = true);

// The same at six moments of the drawing, a row a picture.
LAMPLIGHTER_API std::unique_ptr<Sink> growth_sink(std::string path, bool overwrite = true);

// A file that follows the pictures in work: rows of tokens that are complete, grey below. Painting them
// takes no more than `share` of the time that decoding takes, but for the first; rows that it has no time for
// are shown with the next ones.
// Several pictures stand on one sheet, where the next one takes the place of one that is finished. The file
// is replaced in one step each time. `decode` turns codes into a picture, as TextToImage::decode does.
LAMPLIGHTER_API std::unique_ptr<Sink> preview_sink(std::string path,
                                                   std::function<Image(const Codes& codes)> decode,
                                                   bool overwrite = true, double share = 0.2);

}  // namespace lamplighter
