#include "lamplighter/pipeline.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "bundle/machine.h"
#include "decode/decode.h"
#include "propose/method.h"
#include "decode/prompts.h"
#include "lamplighter/error.h"
#include "pipeline/drawing.h"
#include "propose/registry.h"

namespace lamplighter {
namespace {

// fp32 [3, h, w] in [-1, 1] to bytes, as the published programs save them. pixels "round": LlamaGen's
// trunc(clamp(127.5 x + 128, 0, 255)); "truncate": Chameleon's trunc((clamp(x, -1, 1) + 1) / 2 * 255).
Image to_image(const at::Tensor& rgb, const std::string& pixels) {
  const at::Tensor levels =
      pixels == "truncate" ? (rgb.clamp(-1, 1) + 1.0) / 2.0 * 255.0 : (rgb * 127.5 + 128.0).clamp(0, 255);
  const at::Tensor bytes = levels.to(at::kByte).permute({1, 2, 0}).contiguous().cpu();
  Image image{static_cast<int>(bytes.size(1)), static_cast<int>(bytes.size(0)), {}};
  const std::uint8_t* data = bytes.const_data_ptr<std::uint8_t>();
  image.pixels.assign(data, data + bytes.numel());
  return image;
}

bool is_greedy(const Manifest& manifest, const Request& request) {
  return resolve_sampling(manifest, request).temperature <= 0;
}

// The end of the requests that run side by side: with the same grid, and all greedy or none.
std::size_t group_end(const Manifest& manifest, const std::vector<Request>& requests, std::size_t begin) {
  const Grid* grid = &find_grid(manifest, requests[begin].width, requests[begin].height);
  const bool greedy = is_greedy(manifest, requests[begin]);
  std::size_t end = begin + 1;
  while (end < requests.size() && &find_grid(manifest, requests[end].width, requests[end].height) == grid &&
         is_greedy(manifest, requests[end]) == greedy) {
    ++end;
  }
  return end;
}

// Refuses the group of requests [begin, end) when the rows of their codes alone are more than the caches of
// `slots` pictures can hold, before weights are read.
void require_caches(const Manifest& manifest, const MethodOptions& method, const Placement& placement,
                    const std::vector<Request>& requests, std::size_t begin, std::size_t end,
                    std::size_t slots) {
  std::int64_t numbers = 2 * manifest.cache.layers * manifest.cache.kv_heads * manifest.cache.head_dim;
  numbers += cache_numbers(method, manifest);
  numbers *= find_grid(manifest, requests[begin].width, requests[begin].height).length();
  for (std::size_t i = begin; i < end; ++i) {
    if (resolve_sampling(manifest, requests[i]).cfg_scale > 1) {
      numbers *= 2;  // pairs
      break;
    }
  }
  slots = std::min(slots, end - begin);
  require_memory(placement.device, numbers * static_cast<std::int64_t>(c10::elementSize(placement.dtype)),
                 static_cast<std::int64_t>(slots),
                 "the caches of " + std::to_string(slots) + (slots == 1 ? " picture" : " pictures"));
}

void check_range(bool ok, const char* key, const std::string& got, const char* expected) {
  if (!ok) throw Error(ExitCode::usage, std::string(key) + ": got " + got + ", expected " + expected);
}

}  // namespace

struct TextToImage::Implementation {
  Manifest manifest;
  RuntimeOptions options;
  Placement placement;
  std::optional<PromptEncoder> prompts;
  std::optional<Target> target;
  std::map<std::string, Drafter> drafters;
  std::optional<ImageDecoder> decoder;

  // Loading waits for the first use, so that decoding saved codes needs the image decoder alone.
  void load_decoder() {
    if (!decoder) decoder.emplace(manifest, placement.device);
  }
  // With a look at the prompts before the large weights are read.
  void load_all(const std::vector<Request>& requests) {
    if (!prompts) load_prompts();
    for (const Request& request : requests)
      prompts->check(request, find_grid(manifest, request.width, request.height));
    if (target) return;
    load_decoder();
    target.emplace(manifest, placement);
  }
  void load_prompts() {
    const std::vector<std::string> missing = missing_for_generation(manifest);
    if (!missing.empty()) {
      std::string names;
      for (const std::string& name : missing) names += (names.empty() ? "" : ", ") + name;
      throw Error(ExitCode::bundle,
                  "bundle " + manifest.directory + " cannot draw pictures: it lacks " + names);
    }
    prompts.emplace(manifest, placement);
  }
  // The target, and the drafter that a resolved method names.
  Models models_of(const MethodOptions& method) {
    Models models{&*target, nullptr};
    if (method.drafter.empty()) return models;
    models.drafter = &drafters.try_emplace(method.drafter, manifest, method.drafter, placement).first->second;
    return models;
  }
  Image paint(const Codes& codes) const;

  mutable std::mutex painting;
};

// Library convolutions round differently for other numbers of pictures and of threads, so every picture is
// decoded alone and, on the CPU, by one thread.
Image TextToImage::Implementation::paint(const Codes& codes) const {
  const std::lock_guard lock(painting);  // a preview may be wanted while a picture is painted
  const int threads = at::get_num_threads();
  const auto restore = [](const int* count) { at::set_num_threads(*count); };
  std::unique_ptr<const int, decltype(restore)> guard(nullptr, restore);
  if (placement.device.is_cpu() && threads > 1) {
    at::set_num_threads(1);
    guard.reset(&threads);
  }
  const at::Tensor ids =
      at::from_blob(const_cast<std::int32_t*>(codes.ids.data()), {1, codes.rows, codes.columns}, at::kInt)
          .to(at::kLong);
  return to_image(decoder->decode(ids.to(placement.device))[0], manifest.decoder.pixels);
}

TextToImage::TextToImage(const std::string& bundle_directory, const RuntimeOptions& options)
    : implementation_(std::make_unique<Implementation>()) {
  implementation_->manifest = read_manifest(bundle_directory);
  implementation_->options = options;
  implementation_->placement = resolve_placement(options);
  verify_files(implementation_->manifest, options.verify_checksums);
}
TextToImage::~TextToImage() = default;
TextToImage::TextToImage(TextToImage&&) noexcept = default;
TextToImage& TextToImage::operator=(TextToImage&&) noexcept = default;

const Manifest& TextToImage::manifest() const {
  return implementation_->manifest;
}
std::string TextToImage::device() const {
  return implementation_->placement.device.str();
}
std::string TextToImage::dtype() const {
  return dtype_name(implementation_->placement.dtype);
}

void TextToImage::check(const Manifest& manifest, const Request& request) {
  find_grid(manifest, request.width, request.height);
  const SamplingOptions sampling = resolve_sampling(manifest, request);
  check_range(std::isfinite(sampling.cfg_scale) && sampling.cfg_scale >= 0, "cfg_scale",
              std::to_string(sampling.cfg_scale), "a finite number, 0 or more");
  check_range(std::isfinite(sampling.temperature) && sampling.temperature >= 0, "temperature",
              std::to_string(sampling.temperature), "a finite number, 0 or more");
  check_range(sampling.top_k >= 0, "top_k", std::to_string(sampling.top_k), "0 (off) or more");
  check_range(sampling.cfg_interval >= -1, "cfg_interval", std::to_string(sampling.cfg_interval),
              "-1 (all) or more");
  check_range(sampling.top_p > 0 && sampling.top_p <= 1, "top_p", std::to_string(sampling.top_p),
              "a number in (0, 1]");
  const bool by_class = manifest.prompt && manifest.prompt->kind == "class";
  if (by_class != request.class_id.has_value()) {
    throw Error(ExitCode::usage, by_class ? "class: got none, expected 0.." +
                                                std::to_string(manifest.prompt->classes - 1) +
                                                ": this bundle draws classes"
                                          : "class: got " + std::to_string(*request.class_id) +
                                                ", expected a prompt: this bundle draws captions");
  }
  if (by_class && (*request.class_id < 0 || *request.class_id >= manifest.prompt->classes)) {
    throw Error(ExitCode::usage, "class: got " + std::to_string(*request.class_id) + ", expected 0.." +
                                     std::to_string(manifest.prompt->classes - 1));
  }
}

void TextToImage::generate(const std::vector<Request>& requests, const ResultCallback& on_result,
                           const ProgressCallback& on_progress, const MethodOptions& method) {
  Implementation& self = *implementation_;
  for (const Request& request : requests) check(self.manifest, request);
  const MethodOptions resolved = resolve_method(
      method, self.manifest, self.placement.device.is_cpu() ? "cpu" : "cuda", self.options.batch_size);
  const std::size_t slots = static_cast<std::size_t>(self.options.batch_size);
  for (std::size_t begin = 0, end = 0; begin < requests.size(); begin = end) {
    end = group_end(self.manifest, requests, begin);
    require_caches(self.manifest, resolved, self.placement, requests, begin, end, slots);
  }
  self.load_all(requests);
  std::optional<Method> greedy, drawn;  // trees and tables are read once
  for (std::size_t begin = 0; begin < requests.size();) {
    const bool is_ranked = is_greedy(self.manifest, requests[begin]);
    std::optional<Method>& ready = is_ranked ? greedy : drawn;
    if (!ready) ready = make_method(resolved, self.manifest, self.placement.device, is_ranked);
    const std::size_t end = group_end(self.manifest, requests, begin);
    Drawing drawing(
        {self.models_of(resolved), *self.prompts, self.options, resolved, *ready}, {requests, begin, end},
        [&](const Codes& codes) { return self.paint(codes); }, on_result, on_progress);
    with_machine_errors([&] { drawing.run(); });
    begin = end;
  }
}

Result TextToImage::generate(const Request& request, const MethodOptions& method) {
  Result result;
  generate(
      {request}, [&](std::size_t, Result&& done) { result = std::move(done); }, {}, method);
  return result;
}

Image TextToImage::decode(const Codes& codes) {
  const Manifest& manifest = implementation_->manifest;
  if (codes.rows <= 0 || codes.columns <= 0 ||
      codes.ids.size() != static_cast<std::size_t>(codes.rows) * static_cast<std::size_t>(codes.columns)) {
    throw Error(ExitCode::input, "codes: got " + std::to_string(codes.ids.size()) + " ids for a grid of " +
                                     std::to_string(codes.rows) + " x " + std::to_string(codes.columns));
  }
  for (const std::int32_t id : codes.ids) {
    if (id < 0 || id >= manifest.decoder.codebook_size) {
      throw Error(ExitCode::input, "codes: got id " + std::to_string(id) + ", expected 0.." +
                                       std::to_string(manifest.decoder.codebook_size - 1));
    }
  }
  implementation_->load_decoder();
  return implementation_->paint(codes);
}

}  // namespace lamplighter
