#include "lamplighter/pipeline.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "bundle/machine.h"
#include "decode/prompts.h"
#include "kernels/common/isa.h"
#include "lamplighter/error.h"
#include "lamplighter/method.h"
#include "pipeline/capacity.h"
#include "pipeline/caption_notes.h"
#include "pipeline/drawing/continuous_drawing.h"
#include "pipeline/drawing/continuous_session.h"
#include "pipeline/drawing/drawing.h"
#include "pipeline/drawing/session.h"
#include "pipeline/methods.h"
#include "pipeline/painter.h"
#include "pipeline/requests/codes_check.h"
#include "pipeline/requests/request.h"

namespace lamplighter {

namespace {

// All that the ids of a prompt come from.
using PromptSource =
    std::tuple<std::string, std::optional<std::string>, std::optional<std::int64_t>, const Grid*>;
PromptSource source_of(const Request& request, const Grid& grid) {
  return {request.prompt, request.negative_prompt, request.class_id, &grid};
}

}  // namespace

struct TextToImage::Implementation {
  Manifest manifest;
  RuntimeOptions options;
  Placement placement;
  std::optional<PromptTokenizer> tokenizer;
  std::map<PromptSource, PromptIds> noted;
  std::optional<Painter> painter;
  // Of codes.
  std::optional<PromptEncoder> prompts;
  std::optional<Target> target;
  std::map<std::string, Drafter> drafters;
  // Of continuous tokens.
  std::optional<ContinuousModels> continuous;

  // Loading waits for the first use, so that decoding saved codes needs the image decoder alone.
  const Painter& load_painter() {
    if (!painter) painter.emplace(manifest, placement.device);
    return *painter;
  }
  // Prompts are looked at before weights are read.
  void load_tokenizer() {
    if (tokenizer) return;
    require_drawable(manifest);
    tokenizer.emplace(manifest);
  }
  // All that pictures are drawn with but drafters.
  void load() {
    load_tokenizer();
    if (target || continuous) return;
    if (!manifest.is_continuous()) prompts.emplace(manifest, placement);
    load_painter();
    if (manifest.is_continuous()) {
      continuous.emplace(manifest, placement).load_target();
    } else {
      target.emplace(manifest, placement);
    }
  }
  // Notes are told of captions that are drawn next: their ids are kept so that they are read once.
  PromptIds encode(const Request& request, const Grid& grid) {
    load_tokenizer();
    const auto known = noted.find(source_of(request, grid));
    return known != noted.end() ? known->second : tokenizer->encode(request, grid);
  }
  Methods methods() const { return {manifest, placement, options.batch_size}; }
  // Of a request that is resolved.
  void choose_method(Methods& methods, const MethodOptions& wanted, ResolvedRequest& request) const {
    request.method = methods.find(wanted);
    if (manifest.is_continuous()) check_continuous(request, methods.options(request.method));
  }
  // What codes are drawn with, by the method of a request.
  Drawing::Tools tools_of(Methods& methods, const ResolvedRequest& request) {
    const MethodOptions& resolved = methods.options(request.method);
    const Method& ready = methods.ready(request.method, request.is_greedy());
    Models models{&*target, nullptr};
    if (!resolved.drafter.empty())
      models.drafter =
          &drafters.try_emplace(resolved.drafter, manifest, resolved.drafter, placement).first->second;
    return {models, *prompts, options, resolved, ready};
  }
  ContinuousRun run_of(Methods& methods, const ResolvedRequest& request) {
    return continuous->run_of(methods.options(request.method), *request.grid);
  }
  auto paint_codes() const {
    return [this](const Codes& codes) { return painter->paint(codes); };
  }
  auto paint_latents() const {
    return [this](const at::Tensor& latents) { return painter->paint(latents); };
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
  return placement.device.is_cpu() && placement.dtype == at::kBFloat16 ? isa_name(active_isa()) : "";
}

void TextToImage::check(const Manifest& manifest, const Request& request) {
  resolve_request(manifest, request);
  if (request.method) resolve_method(*request.method, manifest);
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
                           const TurnCallback& on_turn) {
  Implementation& self = *implementation_;
  std::vector<ResolvedRequest> wanted =
      resolve_requests(self.manifest, requests,
                       [&](const Request& request, const Grid& grid) { return self.encode(request, grid); });
  self.noted.clear();
  Methods methods = self.methods();
  for (std::size_t i = 0; i < requests.size(); ++i)
    self.choose_method(methods, requests[i].method.value_or(method), wanted[i]);
  const std::vector<RequestGroup> groups = group_requests(wanted);
  const auto slots = static_cast<std::size_t>(self.options.batch_size);
  for (const RequestGroup& group : groups) {
    require_pictures(self.manifest, methods.options(wanted[group.begin].method), self.placement, wanted,
                     group, slots);
  }
  self.load();
  bool stopped = false;
  const TurnCallback turn = [&](std::size_t request) {
    const Turn answer = on_turn ? on_turn(request) : Turn::draw;
    stopped = answer == Turn::stop;
    return answer;
  };
  for (const RequestGroup& group : groups) {
    if (stopped) return;
    const ResolvedRequest& first = wanted[group.begin];
    if (self.manifest.is_continuous()) {
      const ContinuousRun run = self.run_of(methods, first);
      ContinuousDrawing drawing(self.manifest, run, wanted, group,
                                {self.paint_latents(), on_result, on_progress, turn});
      with_machine_errors([&] { drawing.run(slots); });
    } else {
      Drawing drawing(self.tools_of(methods, first), wanted, group,
                      {self.paint_codes(), on_result, on_progress, turn});
      with_machine_errors([&] { drawing.run(); });
    }
  }
}

void TextToImage::serve(Feed& feed, const MethodOptions& method) {
  Implementation& self = *implementation_;
  constexpr std::size_t most = 16;  // methods that are kept ready
  self.load();
  std::optional<Methods> methods(self.methods());
  const FeedSession::Calls calls{
      [&](const Request& request) {
        ResolvedRequest resolved = resolve_request(self.manifest, request);
        self.choose_method(*methods, request.method.value_or(method), resolved);
        return resolved;
      },
      [&](const Request& request, ResolvedRequest& resolved) {
        resolved.prompt = std::make_shared<const PromptIds>(self.encode(request, *resolved.grid));
      }};
  const auto next = [&] {
    return FeedSession::take(
        feed, [](const Request&) { return true; }, true, calls);
  };
  const auto draw = [&](FedRequest first) {
    if (self.manifest.is_continuous()) {
      const ContinuousRun run = self.run_of(*methods, first.resolved);
      return ContinuousSession({self.manifest, run, self.options.batch_size, self.paint_latents()}, feed,
                               std::move(first), calls)
          .run();
    }
    const Drawing::Tools tools = self.tools_of(*methods, first.resolved);
    return Session(tools, self.paint_codes(), feed, std::move(first), calls).run();
  };
  for (std::optional<FedRequest> first = next(); first;) {
    const std::uint64_t number = first->number;
    try {
      first = draw(std::move(*first));
    } catch (const Error& error) {
      feed.failed(number, error);
      first.reset();
    }
    if (first) continue;
    if (methods->size() > most) methods.emplace(self.methods());
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
  check_codes(implementation_->manifest, codes, "codes", CodeRows::first);
  return implementation_->load_painter().paint(codes);
}

}  // namespace lamplighter
