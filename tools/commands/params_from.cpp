#include "params_from.h"

#include <optional>

#include "base/utf8.h"
#include "bundle/placement.h"
#include "lamplighter/pipeline.h"
#include "tree/tree.h"

namespace lamplighter::cli {
namespace {

// What `check` complains of.
template <class Check>
std::optional<Error> complaint_of(const Check& check) {
  try {
    check();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

bool is_of_settings(const Error& error) {
  return error.code() == ExitCode::usage || error.code() == ExitCode::input;
}

// The request with all that the picture says. The files it names are not read.
Request whole_request(const Recorded& recorded) {
  Request request = recorded.request;
  request.method = recorded.method;
  request.method->neighbours.clear();
  if (is_tree_file(request.method->tree)) request.method->tree.clear();
  return request;
}

// What is wrong with the picture's precisions, where the flags can be met without them.
std::optional<Error> complaint_of_dtypes(const Recorded& recorded, const Manifest& manifest,
                                         RuntimeOptions runtime) {
  runtime.note = nullptr;
  const auto place = [&] { resolve_placement(runtime, manifest); };
  if (complaint_of(place)) return std::nullopt;
  runtime.dtype = recorded.dtype;
  runtime.cache_dtype = recorded.cache_dtype;
  return complaint_of(place);
}

}  // namespace

void check_files(const std::string& picture, const MethodOptions& merged, const MethodOptions& given) {
  // Which files are read is for flags alone to say: pictures come from strangers.
  const auto refuse = [&](const char* flag, const std::string& path) {
    throw Error(ExitCode::input, picture + ": was drawn with the file " + shorten(path, 200) +
                                     ", which a picture cannot choose; give " + flag + " FILE");
  };
  if (given.tree.empty() && is_tree_file(merged.tree)) refuse("--tree", merged.tree);
  if (given.neighbours.empty() && !merged.neighbours.empty()) refuse("--neighbours", merged.neighbours);
}

Error blame_picture(const std::string& picture, const Recorded& recorded, const std::string& bundle,
                    const RuntimeOptions& runtime, const Error& error) {
  if (!is_of_settings(error)) return error;
  std::optional<Error> own;
  const auto unreadable = complaint_of([&] {
    const Manifest manifest = read_manifest(bundle);
    own = complaint_of([&] { TextToImage::check(manifest, whole_request(recorded)); });
    if (!own) own = complaint_of_dtypes(recorded, manifest, runtime);
  });
  if (unreadable || !own || !is_of_settings(*own)) return error;
  return {ExitCode::input, picture + ": parameters: " + own->what()};
}

}  // namespace lamplighter::cli
