// Runs the decode loop on recorded conditions: golden_decode BUNDLE IN.safetensors OUT.safetensors
// OPTIONS.json
//   in:  features [B, T, C] and mask [B, T] (right padded), or class_ids [B]; forced_tokens [B, N] (optional)
//   options: cfg_scale, temperature, top_k, top_p, cfg_interval, seed (image i uses seed + i); method, and
//   its
//        options by their keys (draft/options.h)
//   out: tokens int32 [B, N]; accept_lengths int32 [cycles] of the first image. With forced_tokens and ar or
//   a
//        row-parallel method also, per step in the order of decoding, conditional sequences before
//        unconditional ones: logits [N, S, V], probabilities [N, B, V], hidden_steps [N - 1, S, H],
//        hidden_prefill [S, T, H]
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/InferenceMode.h>

#include "base/files.h"
#include "base/json.h"
#include "bundle/tensor_file.h"
#include "decode/cycle.h"
#include "decode/decode.h"
#include "decode/prompts.h"
#include "draft/method.h"
#include "draft/options/options.h"
#include "draft/registry.h"
#include "kernels/ops.h"
#include "lamplighter/pipeline.h"
#include "tests/program.h"

using namespace lamplighter;

namespace {

SamplingOptions read_run(const std::string& path, std::uint64_t& seed, MethodOptions& method) {
  const Json json = parse_json(read_file(path), path, ExitCode::input);
  JsonReader reader(json, path, ExitCode::input);
  SamplingOptions sampling;
  if (reader.has("cfg_scale")) sampling.cfg_scale = static_cast<float>(reader.number("cfg_scale"));
  if (reader.has("temperature")) sampling.temperature = static_cast<float>(reader.number("temperature"));
  if (reader.has("top_k")) sampling.top_k = reader.integer("top_k");
  if (reader.has("top_p")) sampling.top_p = static_cast<float>(reader.number("top_p"));
  if (reader.has("cfg_interval")) sampling.cfg_interval = reader.integer("cfg_interval");
  if (reader.has("seed")) seed = reader.unsigned_integer("seed");
  method = read_options(reader);
  if (reader.has("method")) method.method = reader.text("method");
  reader.finish();
  return sampling;
}

std::vector<Condition> read_conditions(const Safetensors& file, std::int64_t length) {
  const auto tensor = [&](const char* name) { return to_tensor(file.at(name), name, ExitCode::input); };
  std::vector<Condition> conditions;
  if (file.tensors().count("class_ids") != 0) {
    const at::Tensor ids = tensor("class_ids").to(at::kLong).view({-1, 1});
    for (std::int64_t i = 0; i < ids.size(0); ++i) {
      conditions.push_back({ids.narrow(0, i, 1), at::ones_like(ids.narrow(0, i, 1))});
    }
    return conditions;
  }
  const at::Tensor features = tensor("features");
  const at::Tensor mask = tensor("mask").to(at::kLong);
  const std::int64_t padding = length - mask.size(1);
  for (std::int64_t i = 0; i < features.size(0); ++i) {
    conditions.push_back({at::constant_pad_nd(features.narrow(0, i, 1), {0, 0, 0, padding}),
                          at::constant_pad_nd(mask.narrow(0, i, 1), {0, padding})});
  }
  return conditions;
}

// Reorders interleaved pairs: conditional sequences, then unconditional ones.
at::Tensor halves_first(const at::Tensor& rows, bool guided) {
  if (!guided) return rows;
  return at::cat({rows.slice(0, 0, std::nullopt, 2), rows.slice(0, 1, std::nullopt, 2)});
}

// Replaces the committed tokens by the next ones of `forced` [B, N]; returns their number.
std::int64_t force(const DecodeState& state, const at::Tensor& forced, Verified& verified) {
  const at::Tensor known = state.draft_method->order();
  const at::Tensor order = known.defined() ? known[0] : at::arange(state.run.counters.total);
  const auto steps = state.run.counters.steps[0].item<std::int64_t>();
  const std::int64_t count = verified.walk.count[0].item<std::int64_t>() + 1;
  const at::Tensor next = forced.index_select(1, order.narrow(0, steps, count));
  if (count > 1) verified.tokens.narrow(1, 1, count - 1).copy_(next.narrow(1, 0, count - 1));
  verified.walk.token = next.select(1, count - 1).contiguous();
  return count;
}

std::map<std::string, at::Tensor> run_forced(const Target& target, const Prompts& prompts,
                                             const std::vector<DecodeRequest>& requests, const Grid& grid,
                                             const Method& method, const at::Tensor& forced) {
  const Models models{&target, nullptr};
  DecodeState state = make_state(models, method, prompts, requests, grid);
  const at::Tensor positions = prompt_positions(target, prompts);
  const at::Tensor prompt_rows =
      target
          .forward(prompts.rows.narrow(1, 0, positions.size(1)).contiguous(), positions,
                   at::empty({0}, positions.options()), at::zeros_like(prompts.valid), state.run.cache)
          .hidden;
  Draft tree = last_token(state);
  Scores scores = prefill(models, prompts, state);
  std::vector<at::Tensor> logits, probabilities, steps;
  while (true) {
    const at::Tensor row = target.logits(scores.hidden);
    const ops::Distributions rows = distributions(state.run, state.run.target_filter, row, tree.nodes.depths);
    Verified verified = verify(models, method, state, tree, scores);
    const std::int64_t count = force(state, forced, verified);
    const auto by_step = [&](const at::Tensor& all) { return all.narrow(1, 0, count).transpose(0, 1); };
    logits.push_back(by_step(halves_first(row, state.run.guided)));
    probabilities.push_back(by_step(ops::probabilities(rows)));
    steps.push_back(by_step(halves_first(scores.hidden, state.run.guided)));
    commit(state, tree, scores, verified);
    if (state.run.counters.steps.min().item<std::int64_t>() == state.run.counters.total) break;
    tree = draft(state);
    scores = score(models, state, tree);
  }
  return {{"logits", at::cat(logits)},
          {"probabilities", at::cat(probabilities)},
          {"hidden_steps", at::cat(steps).slice(0, 1)},
          {"hidden_prefill", halves_first(prompt_rows, state.run.guided)}};
}

// Accepted tokens per cycle of the first image, and the tokens of all images.
void run_method(const Manifest& manifest, const Target& target, const std::vector<Condition>& conditions,
                const std::vector<DecodeRequest>& requests, const MethodOptions& options,
                std::map<std::string, at::Tensor>& out) {
  const MethodOptions resolved = resolve_method(options, manifest);
  const bool greedy = requests.front().sampling.temperature <= 0;
  const Method method = make_method(resolved, manifest, c10::kCPU, greedy);
  std::optional<DraftModel> drafter;
  if (!resolved.drafter.empty()) drafter.emplace(manifest, resolved.drafter, target.placement());
  const Models models{&target, drafter ? &*drafter : nullptr};
  const Prompts prompts = embed_prompts(models, conditions, is_guided(requests), method.padded);
  std::vector<std::int32_t> counts;
  out["tokens"] =
      decode(models, method, prompts, requests, find_grid(manifest, 0, 0), [&](const Report& report) {
        counts.push_back(static_cast<std::int32_t>(report.images[0].accepted));
        return true;
      }).to(at::kInt);
  out["accept_lengths"] = at::tensor(counts, at::kInt);
}

void run(char** arguments) {
  const c10::InferenceMode inference;
  const Manifest manifest = read_manifest(arguments[1]);
  const Safetensors file = Safetensors::read(arguments[2], ExitCode::input);
  std::uint64_t seed = 0;
  MethodOptions method;
  const SamplingOptions sampling = read_run(arguments[4], seed, method);
  const Target target(manifest, {c10::kCPU, c10::kFloat});

  const std::vector<Condition> conditions = read_conditions(file, manifest.prompt->length);
  std::vector<DecodeRequest> requests;
  for (std::size_t i = 0; i < conditions.size(); ++i) requests.push_back({sampling, seed + i});
  std::map<std::string, at::Tensor> out;
  if (file.tensors().count("forced_tokens") != 0) {
    const at::Tensor forced =
        to_tensor(file.at("forced_tokens"), "forced_tokens", ExitCode::input).to(at::kLong);
    const Prompts prompts = embed_prompts({&target}, conditions, is_guided(requests));
    const Method by = find_method(method.method).verifies()
                          ? Method{}
                          : make_method(resolve_method(method, manifest), manifest, c10::kCPU, false);
    out = run_forced(target, prompts, requests, find_grid(manifest, 0, 0), by, forced);
  }
  run_method(manifest, target, conditions, requests, method, out);
  write_tensors(arguments[3], out);
}

}  // namespace

int main(int count, char** arguments) {
  return lamplighter::run_program("golden_decode BUNDLE IN.safetensors OUT.safetensors OPTIONS.json",
                                  count == 5, [&] { run(arguments); });
}
