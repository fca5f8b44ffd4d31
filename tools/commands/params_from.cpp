#include "tools/commands/params_from.h"

#include <optional>

#include "base/utf8.h"
#include "device/placement.h"
#include "lamplighter/pipeline.h"
#include "tree/tree.h"

namespace lamplighter::cli {
namespace {

// Returns the error that `check` throws.
template <class Check>
std::optional<Error> error_of(const Check& check) {
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

// The request with all settings of the image, without the files that it names.
Request whole_request(const Recorded& recorded) {
  Request request = recorded.request;
  request.method = recorded.method;
  request.method->neighbours.clear();
  if (is_tree_file(request.method->tree)) request.method->tree.clear();
  return request;
}

// Returns what is wrong with the precisions of the image, if the flags alone are valid.
std::optional<Error> error_of_dtypes(const Recorded& recorded, const Manifest& manifest,
                                     RuntimeOptions runtime) {
  runtime.note = nullptr;
  const auto resolve = [&] { resolve_placement(runtime, manifest); };
  if (error_of(resolve)) return std::nullopt;
  runtime.dtype = recorded.dtype;
  runtime.cache_dtype = recorded.cache_dtype;
  return error_of(resolve);
}

}  // namespace

void check_files(const std::string& image, const MethodOptions& merged, const MethodOptions& given) {
  // Only flags choose files to read: images are untrusted input.
  const auto refuse = [&](const char* flag, const std::string& path) {
    throw Error(ExitCode::input, image + ": was generated with the file " + shorten(path, 200) +
                                     ", and files are not read on behalf of an image; give " + flag +
                                     " FILE");
  };
  if (given.tree.empty() && is_tree_file(merged.tree)) refuse("--tree", merged.tree);
  if (given.neighbours.empty() && !merged.neighbours.empty()) refuse("--neighbours", merged.neighbours);
}

Error blame_image(const std::string& image, const Recorded& recorded, const std::string& bundle,
                  const RuntimeOptions& runtime, const Error& error) {
  if (!is_of_settings(error)) return error;
  std::optional<Error> own;
  const auto unreadable = error_of([&] {
    const Manifest manifest = read_manifest(bundle);
    own = error_of([&] { TextToImage::check(manifest, whole_request(recorded)); });
    if (!own) own = error_of_dtypes(recorded, manifest, runtime);
  });
  if (unreadable || !own || !is_of_settings(*own)) return error;
  return {ExitCode::input, image + ": parameters: " + own->what()};
}

}  // namespace lamplighter::cli
