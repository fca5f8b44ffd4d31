// Writes the caches after decoding: golden_layout BUNDLE OUT.safetensors < runs.json
//   in:  [{"width", "height", "ids", "unconditional", "cfg_scale", "temperature", "method", "tree"}, ...]:
//   one
//        image each; ids exclude the grid's own; method and tree are as the flags
//   out: after the last code of run k: k.codes [N], k.cycles, k.root, k.cache and k.lengths, for methods with
//   a
//        drafter also k.draft_cache and k.draft_lengths; shapes as in DecodeState
#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <c10/core/InferenceMode.h>

#include <iostream>
#include <iterator>

#include "base/json.h"
#include "bundle/tensor_file.h"
#include "decode/cycle.h"
#include "decode/prefill.h"
#include "decode/prompts.h"
#include "draft/drafters/eagle.h"
#include "lamplighter/pipeline.h"
#include "tests/program.h"

using namespace lamplighter;

namespace {

struct Run {
  const Grid* grid = nullptr;
  Condition condition;
  DecodeRequest request;
  MethodOptions method;
};

Run read_run(JsonReader& reader, const Manifest& manifest) {
  Run run;
  run.grid = &find_grid(manifest, static_cast<int>(reader.integer("width")),
                        static_cast<int>(reader.integer("height")));
  run.condition.ids = reader.integers("ids");
  run.condition.unconditional = reader.integers("unconditional");
  for (auto* ids : {&run.condition.ids, &run.condition.unconditional})
    ids->insert(ids->end(), run.grid->before.begin(), run.grid->before.end());
  run.request.sampling.cfg_scale = static_cast<float>(reader.number("cfg_scale"));
  run.request.sampling.temperature = static_cast<float>(reader.number("temperature"));
  run.method.method = reader.text("method");
  if (reader.has("tree")) run.method.tree = reader.text("tree");
  reader.finish();
  return run;
}

void record(const Manifest& manifest, const Target& target, const Run& run, const std::string& name,
            std::map<std::string, at::Tensor>& out) {
  const MethodOptions resolved = resolve_method(run.method, manifest);
  const Method method = make_method(resolved, manifest, c10::kCPU, run.request.sampling.temperature <= 0);
  std::optional<DraftModel> drafter;
  if (!resolved.drafter.empty()) drafter.emplace(manifest, resolved.drafter, target.placement());
  const Models models{&target, drafter ? &*drafter : nullptr};
  const std::vector<DecodeRequest> requests{run.request};
  const Prompts prompts = embed_prompts(models, {run.condition}, is_guided(requests));
  DecodeState last = make_state(models, method, prompts, requests, *run.grid);
  Draft tree = last_token(last);
  Scores scores = prefill(models, prompts, last);
  std::int64_t cycles = 0;
  while (true) {
    commit(last, tree, scores, verify(models, method, last, tree, scores));
    ++cycles;
    if (last.run.counters.steps.item<std::int64_t>() == last.run.counters.total) break;
    tree = draft(last);
    scores = score(models, last, tree);
  }
  out[name + ".codes"] = last.run.counters.codes[0].narrow(0, 0, last.run.counters.total).contiguous();
  out[name + ".cycles"] = at::tensor(cycles);
  out[name + ".root"] = last.run.counters.root;
  out[name + ".cache"] = last.run.cache;
  out[name + ".lengths"] = last.run.counters.lengths;
  const auto* eagle = dynamic_cast<const Eagle*>(last.draft_method.get());
  if (eagle == nullptr) return;
  out[name + ".draft_cache"] = eagle->cache;
  out[name + ".draft_lengths"] = eagle->lengths;
}

void run(char** arguments) {
  const c10::InferenceMode inference;
  const Manifest manifest = read_manifest(arguments[1]);
  const Target target(manifest, {c10::kCPU, c10::kFloat});
  const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  const Json runs = parse_json(text, "runs", ExitCode::input);
  std::map<std::string, at::Tensor> out;
  for (std::size_t k = 0; k < runs.size(); ++k) {
    JsonReader reader(runs[k], "run " + std::to_string(k), ExitCode::input);
    record(manifest, target, read_run(reader, manifest), std::to_string(k), out);
  }
  write_tensors(arguments[2], out);
}

}  // namespace

int main(int count, char** arguments) {
  return lamplighter::run_program("golden_layout BUNDLE OUT.safetensors < runs.json", count == 3,
                                  [&] { run(arguments); });
}
