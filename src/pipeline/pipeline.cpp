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

#include "base/utf8.h"
#include "bundle/machine.h"
#include "decode/decode.h"
#include "decode/prompts.h"
#include "kernels/common/isa.h"
#include "lamplighter/error.h"
#include "lamplighter/method.h"
#include "pipeline/continuous_drawing.h"
#include "pipeline/continuous_session.h"
#include "pipeline/drawing.h"
#include "pipeline/methods.h"
#include "pipeline/request.h"
#include "pipeline/session.h"
#include "propose/registry.h"
#include "text/vocabulary.h"

namespace lamplighter {
namespace {

// fp32 [3, h, w] in [-1, 1] to levels whose whole part is the byte, as the published programs have it.
// pixels "round": LlamaGen's 127.5 x + 128; "truncate": Chameleon's (clamp(x, -1, 1) + 1) / 2 * 255;
// "nearest": Lumina-mGPT 2.0's (x + 1) * 127.5 to the nearest, halves to the even one.
at::Tensor to_levels(const at::Tensor& rgb, const std::string& pixels) {
  if (pixels == "truncate") return (rgb.clamp(-1, 1) + 1.0) / 2.0 * 255.0;
  if (pixels == "nearest") return ((rgb + 1.0) * 127.5).round().clamp(0, 255);
  return (rgb * 127.5 + 128.0).clamp(0, 255);
}

Image to_image(const at::Tensor& rgb, const std::string& pixels) {
  if (!std::isfinite(rgb.sum(at::kDouble).item<double>())) {  // one such number makes the sum one
    throw Error(
        ExitCode::bundle,
        "image_decoder: got pixels that are NaN or infinite, expected finite numbers; its weights are "
        "damaged");
  }
  const at::Tensor bytes = to_levels(rgb, pixels).to(at::kByte).permute({1, 2, 0}).contiguous().cpu();
  Image image{static_cast<int>(bytes.size(1)), static_cast<int>(bytes.size(0)), {}};
  const std::uint8_t* data = bytes.const_data_ptr<std::uint8_t>();
  image.pixels.assign(data, data + bytes.numel());
  return image;
}

// What a picture holds while it is drawn, at least and without guidance: the rows of its codes in the caches,
// or the contexts of a pass.
std::int64_t picture_bytes(const Manifest& manifest, const MethodOptions& method, const Placement& placement,
                           const Grid& grid) {
  if (manifest.is_continuous()) {
    const bool verifies = !method.rule.empty() && method.rule != "released";
    return context_bytes(manifest, grid) * (verifies ? std::min(*method.gamma, grid.tokens()) + 1 : 1);
  }
  return grid.length() *
         (row_bytes(manifest.cache, placement) +
          cache_numbers(method, manifest) * static_cast<std::int64_t>(c10::elementSize(placement.dtype)));
}

// Refuses a group of requests when `slots` pictures of it cannot be held, before weights are read.
void require_pictures(const Manifest& manifest, const MethodOptions& method, const Placement& placement,
                      const std::vector<ResolvedRequest>& requests, const RequestGroup& group,
                      std::size_t slots) {
  std::int64_t bytes = picture_bytes(manifest, method, placement, *requests[group.begin].grid);
  for (std::size_t i = group.begin; i < group.end; ++i) {
    if (requests[i].sampling.cfg_scale > 1) {
      bytes *= 2;  // pairs
      break;
    }
  }
  slots = std::min(slots, group.end - group.begin);
  require_memory(placement.device, bytes, static_cast<std::int64_t>(slots),
                 (manifest.is_continuous() ? "the passes of " : "the caches of ") + std::to_string(slots) +
                     (slots == 1 ? " picture" : " pictures"));
}

// What a bundle of few words does not understand; empty when it does.
std::string describe(const Manifest& manifest, const Understanding& caption) {
  if (caption.whole()) return "";
  std::string words;
  for (const std::string& word : caption.unknown) words += (words.empty() ? "" : ", ") + word;
  const std::string unknown = words.empty() ? "" : "does not know: " + shorten(words, 200);
  const std::string subject = caption.subject ? "" : "finds no subject that it can draw";
  return manifest.name + " " + subject + (subject.empty() || unknown.empty() ? "" : " and ") + unknown +
         "; try \"" + manifest.prompt->vocabulary->example + "\", `lamplighter inspect` lists what it knows";
}

}  // namespace

struct TextToImage::Implementation {
  Manifest manifest;
  RuntimeOptions options;
  Placement placement;
  std::optional<PromptTokenizer> tokenizer;
  std::map<std::pair<std::string, const Grid*>, PromptIds> noted;
  std::optional<PromptEncoder> prompts;
  std::optional<Target> target;
  std::map<std::string, Drafter> drafters;
  std::optional<ImageDecoder> decoder;
  std::optional<ContinuousModels> continuous;

  // Loading waits for the first use, so that decoding saved codes needs the image decoder alone.
  void load_decoder() {
    if (!decoder) decoder.emplace(manifest, placement.device);
  }
  void load_all() {
    if (target) return;
    prompts.emplace(manifest, placement);
    load_decoder();
    target.emplace(manifest, placement);
  }
  void load_continuous() {
    require_drawable(manifest);
    if (!continuous) continuous.emplace(manifest, placement);
    load_decoder();
  }
  // Prompts are looked at before weights are read.
  void load_tokenizer() {
    if (tokenizer) return;
    require_drawable(manifest);
    tokenizer.emplace(manifest);
  }
  // Notes are told of captions that are drawn next: their ids are kept so that they are read once.
  PromptIds encode(const Request& request, const Grid& grid) {
    load_tokenizer();
    const auto known = noted.find({request.prompt, &grid});
    return known != noted.end() ? known->second : tokenizer->encode(request, grid);
  }
  // The target, and the drafter that a resolved method names.
  Models models_of(const MethodOptions& method) {
    Models models{&*target, nullptr};
    if (method.drafter.empty()) return models;
    models.drafter = &drafters.try_emplace(method.drafter, manifest, method.drafter, placement).first->second;
    return models;
  }
  Image paint(const Codes& codes) const;
  Image paint(const at::Tensor& tokens) const;  // what the image decoder takes of one picture
  void generate_continuous(const std::vector<Request>& requests, const ResultCallback& on_result,
                           const ProgressCallback& on_progress, const MethodOptions& method,
                           const TurnCallback& on_turn);

  mutable std::mutex painting;
};

// Library convolutions round differently for other numbers of pictures and of threads, so every picture is
// decoded alone and, on the CPU, by one thread.
Image TextToImage::Implementation::paint(const Codes& codes) const {
  return paint(
      at::from_blob(const_cast<std::int32_t*>(codes.ids.data()), {1, codes.rows, codes.columns}, at::kInt)
          .to(at::kLong));
}

Image TextToImage::Implementation::paint(const at::Tensor& tokens) const {
  const std::lock_guard lock(painting);  // a preview may be wanted while a picture is painted
  const int threads = at::get_num_threads();
  const auto restore = [](const int* count) { at::set_num_threads(*count); };
  std::unique_ptr<const int, decltype(restore)> guard(nullptr, restore);
  if (placement.device.is_cpu() && threads > 1) {
    at::set_num_threads(1);
    guard.reset(&threads);
  }
  return to_image(decoder->decode(tokens.to(placement.device))[0], manifest.decoder.pixels);
}

void TextToImage::Implementation::generate_continuous(const std::vector<Request>& requests,
                                                      const ResultCallback& on_result,
                                                      const ProgressCallback& on_progress,
                                                      const MethodOptions& method,
                                                      const TurnCallback& on_turn) {
  require_drawable(manifest);
  Methods methods(manifest, placement, options.batch_size);
  std::vector<ResolvedRequest> wanted;
  for (const Request& request : requests) {
    wanted.push_back(resolve_request(manifest, request));
    wanted.back().method = methods.find(request.method.value_or(method));
    check_continuous(wanted.back(), methods.options(wanted.back().method));
  }
  const std::vector<RequestGroup> groups = group_requests(wanted);
  const auto slots = static_cast<std::size_t>(options.batch_size);
  for (const RequestGroup& group : groups)
    require_pictures(manifest, methods.options(wanted[group.begin].method), placement, wanted, group, slots);
  load_continuous();
  bool stopped = false;
  const TurnCallback turn = [&](std::size_t request) {
    const Turn answer = on_turn ? on_turn(request) : Turn::draw;
    stopped = answer == Turn::stop;
    return answer;
  };
  for (const RequestGroup& group : groups) {
    if (stopped) return;
    const ResolvedRequest& first = wanted[group.begin];
    const ContinuousRun run = continuous->run_of(methods.options(first.method), *first.grid);
    ContinuousDrawing drawing(
        manifest, run, wanted, group,
        {[&](const at::Tensor& latents) { return paint(latents); }, on_result, on_progress, turn});
    with_machine_errors([&] { drawing.run(slots); });
  }
}

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
  return placement.device.is_cpu() && placement.dtype == at::kBFloat16 ? isa_name(active_isa()) : "";
}

void TextToImage::check(const Manifest& manifest, const Request& request) {
  resolve_request(manifest, request);
  if (request.method) resolve_method(*request.method, manifest);
}

std::vector<std::string> TextToImage::notes(const Request& request) {
  Implementation& self = *implementation_;
  const Manifest& manifest = self.manifest;
  const ResolvedRequest resolved = resolve_request(manifest, request);
  if (manifest.is_continuous()) return {};
  const PromptIds& prompt =
      self.noted.insert_or_assign({request.prompt, resolved.grid}, self.encode(request, *resolved.grid))
          .first->second;
  std::vector<std::string> lines;
  if (manifest.prompt->vocabulary) {
    const std::string line =
        describe(manifest, Vocabulary(*manifest.prompt->vocabulary).read(request.prompt));
    if (!line.empty()) lines.push_back(line);
  }
  if (!prompt.cut.empty()) {
    lines.push_back("the caption is longer than the " + std::to_string(manifest.tokenizer->max_length) +
                    " tokens that " + manifest.name + " reads; not read: " + shorten(prompt.cut, 200));
  }
  return lines;
}

void TextToImage::generate(const std::vector<Request>& requests, const ResultCallback& on_result,
                           const ProgressCallback& on_progress, const MethodOptions& method,
                           const TurnCallback& on_turn) {
  Implementation& self = *implementation_;
  if (self.manifest.is_continuous())
    return self.generate_continuous(requests, on_result, on_progress, method, on_turn);
  std::vector<ResolvedRequest> wanted =
      resolve_requests(self.manifest, requests,
                       [&](const Request& request, const Grid& grid) { return self.encode(request, grid); });
  self.noted.clear();
  Methods methods(self.manifest, self.placement, self.options.batch_size);
  for (std::size_t i = 0; i < requests.size(); ++i)
    wanted[i].method = methods.find(requests[i].method.value_or(method));
  const std::vector<RequestGroup> groups = group_requests(wanted);
  const std::size_t slots = static_cast<std::size_t>(self.options.batch_size);
  for (const RequestGroup& group : groups) {
    require_pictures(self.manifest, methods.options(wanted[group.begin].method), self.placement, wanted,
                     group, slots);
  }
  self.load_all();
  bool stopped = false;
  const TurnCallback turn = [&](std::size_t request) {
    const Turn answer = on_turn ? on_turn(request) : Turn::draw;
    stopped = answer == Turn::stop;
    return answer;
  };
  for (const RequestGroup& group : groups) {
    if (stopped) return;
    const ResolvedRequest& first = wanted[group.begin];
    const MethodOptions& resolved = methods.options(first.method);
    const Method& ready = methods.ready(first.method, first.is_greedy());
    Drawing drawing({self.models_of(resolved), *self.prompts, self.options, resolved, ready}, wanted, group,
                    {[&](const Codes& codes) { return self.paint(codes); }, on_result, on_progress, turn});
    with_machine_errors([&] { drawing.run(); });
  }
}

void TextToImage::serve(Feed& feed, const MethodOptions& method) {
  Implementation& self = *implementation_;
  constexpr std::size_t most = 16;  // methods that are kept ready
  const bool codes = !self.manifest.is_continuous();
  if (codes) {
    self.load_tokenizer();
    self.load_all();
  } else {
    self.load_continuous();
    self.continuous->load_target();
  }
  std::optional<Methods> methods;
  const Session::Calls calls{[&](const Codes& drawn) { return self.paint(drawn); },
                             [&](const Request& request) {
                               ResolvedRequest resolved = resolve_request(self.manifest, request);
                               resolved.method = methods->find(request.method.value_or(method));
                               if (!codes) check_continuous(resolved, methods->options(resolved.method));
                               return resolved;
                             },
                             [&](const Request& request, ResolvedRequest& resolved) {
                               if (codes)
                                 resolved.prompt =
                                     std::make_shared<const PromptIds>(self.encode(request, *resolved.grid));
                             }};
  methods.emplace(self.manifest, self.placement, self.options.batch_size);
  const auto next = [&] {
    return Session::take(
        feed, [](const Request&) { return true; }, true, calls);
  };
  for (std::optional<FedRequest> first = next(); first;) {
    const std::uint64_t number = first->number;
    try {
      const MethodOptions resolved = methods->options(first->resolved.method);
      if (codes) {
        const Method& ready = methods->ready(first->resolved.method, first->resolved.is_greedy());
        Session session({self.models_of(resolved), *self.prompts, self.options, resolved, ready}, feed,
                        std::move(*first), calls);
        first = session.run();
      } else {
        const ContinuousRun run = self.continuous->run_of(resolved, *first->resolved.grid);
        ContinuousSession session({self.manifest, run, self.options.batch_size,
                                   [&](const at::Tensor& latents) { return self.paint(latents); }},
                                  feed, std::move(*first), calls);
        first = session.run();
      }
    } catch (const Error& error) {
      feed.failed(number, error);
      first.reset();
    }
    if (first) continue;
    if (methods->size() > most) methods.emplace(self.manifest, self.placement, self.options.batch_size);
    first = next();
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
  if (manifest.is_continuous())
    throw Error(ExitCode::input,
                "codes: got some, expected none: the tokens of " + manifest.name + " are continuous");
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
