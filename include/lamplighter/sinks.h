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

// Receives images while they are generated, most often to write a file. Calls come one at a time, from
// several threads.
class LAMPLIGHTER_API Sink {
 public:
  virtual ~Sink() = default;
  // How far the images in work are.
  virtual void progress(const Progress& /*progress*/) {}
  // Image `index` of the run is complete. Images come in the order of the requests.
  virtual void image(std::size_t index, const Request& request, const Result& result) = 0;
  // All images are complete.
  virtual void done() {}
  // The run ends early, by a stop or an error: no more images come. Exceptions from here are dropped.
  virtual void stopped() {}
};
using Sinks = std::vector<std::unique_ptr<Sink>>;

// Generates the requests and calls every sink, in their order, with what comes of them. `go_on` is called
// after every cycle and every image; false stops the run with Error(ExitCode::interrupted). `on_admission` as
// for TextToImage::generate. Throws what the sinks and TextToImage::generate throw, after Sink::stopped.
LAMPLIGHTER_API void generate_into(const Sinks& sinks, TextToImage& engine,
                                   const std::vector<Request>& requests, const MethodOptions& method = {},
                                   const std::function<bool()>& go_on = {},
                                   const AdmissionCallback& on_admission = {});

// Which engine generated the images of a run.
struct Origin {
  std::string model;            // name of the bundle
  std::string manifest_sha256;  // of manifest.json, which names every other file by its checksum
  std::string device, dtype;    // cpu or cuda; fp32, bf16, int8, int4 or fp16
  std::string cache_dtype;      // fp32, bf16, fp16 or int8
  std::string instructions;     // of TextToImage
  std::set<std::string> trees;  // tree files of the bundle
};
LAMPLIGHTER_API Origin describe_origin(const TextToImage& engine);

// The sinks of the library. The ending of a name chooses the format of an image (write_image). All throw
// Error(ExitCode::output) for files that cannot be written, without `overwrite` also for files that exist.
// When a run is stopped, sinks that write one file about all images write it about the complete ones.

// Writes image i as the file paths[i], with its settings as metadata unless `text` is false.
LAMPLIGHTER_API std::unique_ptr<Sink> image_sink(Origin origin, std::vector<std::string> paths,
                                                 bool text = true, bool overwrite = true);

// Writes all images on one sheet.
LAMPLIGHTER_API std::unique_ptr<Sink> sheet_sink(std::string path, bool overwrite = true);

// Writes the image tokens of all images with their settings, a file for `lamplighter decode`.
LAMPLIGHTER_API std::unique_ptr<Sink> codes_sink(Origin origin, std::string path, bool overwrite = true);

// Writes every cycle of every image as a JSON line: image, cycle (from 0), first (index of the first token
// committed), committed, accepted (drafted tokens, also past the last token of the image), positions and
// codes of the committed tokens, ms by stage; with RuntimeOptions::record_drafts tree, accepted_node and
// refused, see DraftedTree. A line with the settings of an image, as in its PNG file, and tokens_per_pass
// comes before its cycles.
LAMPLIGHTER_API std::unique_ptr<Sink> trace_sink(Origin origin, std::string path, bool overwrite = true);

// Writes the images beside their tokens, coloured by how many a pass committed, with the method and its
// tokens per target pass in words. The file is SVG or PDF where its name ends in .svg or .pdf, else an image.
LAMPLIGHTER_API std::unique_ptr<Sink> acceptance_map_sink(std::string path, bool overwrite = true);

// Writes the same at six moments of the run, a row for every image.
LAMPLIGHTER_API std::unique_ptr<Sink> growth_sink(std::string path, bool overwrite = true);

// Keeps a file with the images in work: rows of tokens that are complete, grey below. But for the first rows,
// it takes no more than `share` of the time that decoding takes, and shows rows later where that is not
// enough. Several images stand on one sheet, where the next one takes the place of one that is finished. The
// file is replaced in one step. `decode` turns codes into an image, as TextToImage::decode does.
LAMPLIGHTER_API std::unique_ptr<Sink> preview_sink(std::string path,
                                                   std::function<Image(const Codes& codes)> decode,
                                                   bool overwrite = true, double share = 0.2);

}  // namespace lamplighter
