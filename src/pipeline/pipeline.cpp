#include "lamplighter/pipeline.h"

#include <ATen/Parallel.h>

#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "base/worker.h"
#include "device/machine.h"
#include "draft/auto.h"
#include "kernels/common/isa.h"
#include "lamplighter/error.h"
#include "measure/captions.h"
#include "pipeline/capacity.h"
#include "pipeline/caption_notes.h"
#include "pipeline/choose_method.h"
#include "pipeline/describe.h"
#include "pipeline/methods.h"
#include "pipeline/output/codes_check.h"
#include "pipeline/pixel_decoder.h"
#include "pipeline/pixel_encoder.h"
#include "pipeline/resolved_request.h"
#include "pipeline/scheduler/continuous_backend.h"
#include "pipeline/scheduler/live_source.h"
#include "pipeline/scheduler/ordered_source.h"
#include "pipeline/scheduler/scheduler.h"
#include "pipeline/scheduler/token_backend.h"

namespace lamplighter {

namespace {

// All that the ids of a prompt come from.
using PromptSource =
    std::tuple<std::string, std::optional<std::string>, std::optional<std::int64_t>, const Grid*>;
PromptSource source_of(const Request& request, const Grid& grid) {
  return {request.prompt, request.negative_prompt, request.class_id, &grid};
}

void check_bytes(const Image& image) {
  if (image.pixels.size() == 3 * Codes{image.height, image.width, {}}.positions()) return;
  throw Error(ExitCode::input, "image: got " + counted(image.pixels.size(), "byte") +
                                   ", expected 3 for each of " + sides(image.width, image.height) +
                                   " pixels");
}

}  // namespace

struct TextToImage::Implementation {
  Manifest manifest;
  RuntimeOptions options;
  Placement placement;
  std::optional<PromptTokenizer> tokenizer;
  std::map<PromptSource, PromptIds> noted;
  std::optional<PixelDecoder> decoder;
  std::mutex encoding;  // held by who loads or uses the encoder
  std::optional<PixelEncoder> encoder;
  std::optional<Target> target;  // of codes; copies share its weights
  std::optional<Describer> describer;
  std::unique_ptr<Networks> networks;
  // Decodes complete images. On CUDA every new thread plans the convolutions anew, so it lives as long as the
  // engine.
  std::optional<Worker> decoding;

  // Loading waits for the first use: to decode saved codes takes the image decoder alone.
  const PixelDecoder& load_decoder() {
    if (!decoder) decoder.emplace(manifest, placement.device);
    return *decoder;
  }
  Codes encode(const Image& image) {
    const std::lock_guard lock(encoding);
    if (!encoder) encoder.emplace(manifest, placement.device);
    return encoder->encode(image);
  }
  const Target& load_target() {
    if (!target) target.emplace(manifest, placement);
    return *target;
  }
  // Prompts are looked at before weights are read.
  void load_tokenizer() {
    if (tokenizer) return;
    require_tokens(manifest);
    tokenizer.emplace(manifest);
  }
  // Loads all that every method needs.
  void load() {
    load_tokenizer();
    if (networks) return;
    const PixelDecoder* pixels = manifest.has("image_decoder") ? &load_decoder() : nullptr;
    if (manifest.is_continuous()) {
      require_generatable(manifest);
      networks = std::make_unique<ContinuousNetworks>(
          manifest, placement, [pixels](const at::Tensor& latents) { return pixels->decode(latents); });
    } else {
      networks = std::make_unique<TokenNetworks>(manifest, placement, options, pixels, load_target());
    }
    // On the CPU, decoding changes the number of the library's threads, on which the rounding of continuous
    // tokens depends: there it runs between their passes.
    decoding.emplace(!placement.device.is_cpu() || (at::get_num_threads() > 1 && !manifest.is_continuous()));
  }
  // Captions that have notes are generated next: their ids are kept, so that each is read once.
  PromptIds encode(const Request& request, const Grid& grid) {
    load_tokenizer();
    const auto known = noted.find(source_of(request, grid));
    return known != noted.end() ? known->second : tokenizer->encode(request, grid);
  }
  Methods methods(std::size_t images = 0) {
    return Methods(manifest, placement, options, images, [this](int batch) { return measure(batch); });
  }
  // Measures the methods for the method auto.
  std::optional<TableRun> measure(int batch_size) {
    load();
    std::vector<Request> requests(static_cast<std::size_t>(batch_size));
    const std::vector<std::string> prompts = default_prompts(manifest);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      if (manifest.prompt && manifest.prompt->kind == "class") {
        requests[i].class_id = 0;
      } else {
        requests[i].prompt = prompts[i % prompts.size()];
      }
      requests[i].seed = i;
    }
    std::vector<ResolvedRequest> resolved = resolve_requests(
        manifest, requests,
        [&](const Request& request, const Grid& grid) { return tokenizer->encode(request, grid); });
    Methods baseline(manifest, placement, options);
    for (ResolvedRequest& request : resolved) baseline.set({}, request);
    // A method takes turns with the baseline.
    std::vector<ResolvedRequest> both = resolved;
    both.insert(both.end(), resolved.begin(), resolved.end());
    require_images(manifest, placement, both, {0, both.size()}, both.size());
    return with_machine_errors([&] { return networks->try_methods(resolved); });
  }
  void run(ResolvedSource& source) {
    load();
    Scheduler(source, *networks, *decoding).run();
  }
};

TextToImage::TextToImage(const std::string& bundle_directory, const RuntimeOptions& options)
    : implementation_(std::make_unique<Implementation>()) {
  implementation_->manifest = read_manifest(bundle_directory);
  implementation_->options = options;
  implementation_->placement = resolve_placement(options, implementation_->manifest);
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
  return dtype_name(implementation_->placement);
}

std::string TextToImage::cache_dtype() const {
  return cache_dtype_name(implementation_->placement);
}
std::string TextToImage::instructions() const {
  const Placement& placement = implementation_->placement;
  return placement.device.is_cpu() && placement.dtype == at::kBFloat16 ? isa_name(float_isa()) : "";
}

MethodOptions choose_method(const MethodOptions& wanted, const Manifest& manifest,
                            const RuntimeOptions& runtime, std::size_t images, const LogCallback& note) {
  if (!is_auto(wanted)) return wanted;
  RuntimeOptions quiet = runtime;  // the engine reports the device
  quiet.note = {};
  const auto measure = [&](int batch_size) {
    return TextToImage(manifest.directory, quiet).implementation_->measure(batch_size);
  };
  return choose_method(wanted, manifest, resolve_placement(quiet, manifest),
                       batch_of(images, runtime.batch_size), note, measure);
}

void TextToImage::check(const Manifest& manifest, const Request& request) {
  ResolvedRequest resolved = resolve_request(manifest, request);
  if (request.method && !is_auto(*request.method)) Methods(manifest).set(*request.method, resolved);
}

std::vector<std::string> TextToImage::notes(const Request& request) {
  Implementation& self = *implementation_;
  const ResolvedRequest resolved = resolve_request(self.manifest, request);
  if (self.manifest.is_continuous()) return {};
  const PromptIds& prompt =
      self.noted.insert_or_assign(source_of(request, *resolved.grid), self.encode(request, *resolved.grid))
          .first->second;
  return caption_notes(self.manifest, request, prompt);
}

void TextToImage::generate(const std::vector<Request>& requests, const ResultCallback& on_result,
                           const ProgressCallback& on_progress, const MethodOptions& method,
                           const AdmissionCallback& on_admission) {
  Implementation& self = *implementation_;
  std::vector<ResolvedRequest> resolved =
      resolve_requests(self.manifest, requests,
                       [&](const Request& request, const Grid& grid) { return self.encode(request, grid); });
  self.noted.clear();
  Methods methods = self.methods(requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i)
    methods.set(requests[i].method.value_or(method), resolved[i]);
  const auto slots = static_cast<std::size_t>(self.options.batch_size);
  const std::vector<RequestGroup> groups = group_requests(resolved);
  for (const RequestGroup& group : groups)
    require_images(self.manifest, self.placement, resolved, group, slots);
  OrderedSource source(resolved, groups, slots, {on_result, on_progress, on_admission});
  with_machine_errors([&] { self.run(source); });
}

void TextToImage::serve(RequestSource& source, const MethodOptions& method) {
  Implementation& self = *implementation_;
  Methods methods = self.methods();
  LiveSource live(source, self.options.batch_size, [&](const Request& request, bool tokenise) {
    ResolvedRequest resolved = resolve_request(self.manifest, request);
    methods.set(request.method.value_or(method), resolved);
    if (tokenise) resolved.prompt = std::make_shared<const PromptIds>(self.encode(request, *resolved.grid));
    return resolved;
  });
  self.run(live);
}

Result TextToImage::generate(const Request& request, const MethodOptions& method) {
  Result result;
  generate(
      {request}, [&](std::size_t, Result&& done) { result = std::move(done); }, {}, method);
  return result;
}

Image TextToImage::decode(const Codes& codes) {
  check_codes(implementation_->manifest, codes, "codes", CodeRows::first);
  return implementation_->load_decoder().decode(codes);
}

Codes TextToImage::encode(const Image& image) {
  Implementation& self = *implementation_;
  check_sides(self.manifest, image.width, image.height, "image");
  check_bytes(image);
  return with_machine_errors([&] { return self.encode(image); });
}

void TextToImage::check(const Manifest& manifest, const DescribeRequest& request) {
  check_description(manifest, request);
}

Description TextToImage::describe(const DescribeRequest& request, const MethodOptions& method,
                                  const TextCallback& on_text) {
  Implementation& self = *implementation_;
  const Manifest& manifest = self.manifest;
  check_description(manifest, request);
  check_bytes(request.image);
  if (!self.describer) self.describer.emplace(manifest, self.placement, self.options);
  const Question question = self.describer->resolve(request, method);
  const Grid& grid = manifest.grids.front();
  const Image image = fit_to_bundle(manifest, request.image, {grid.width, grid.height, request.fit}, "image");
  return with_machine_errors([&] {
    const Codes codes = self.encode(image);
    return self.describer->answer(question, codes, self.load_target(), on_text);
  });
}

}  // namespace lamplighter
