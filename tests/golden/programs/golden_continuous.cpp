// Runs the loop of continuous tokens on recorded random numbers: golden_continuous BUNDLE IN.safetensors
// OUT.safetensors OPTIONS.json. B images side by side, L positions, C channels, T denoising steps, R
// proposals for a token.
//   in:  class_ids int64 [B], the number of classes = no class; order int64 [B, L]; start [B, L, C]; noise
//        [B, L, T, C]; where drafts are verified also uniforms fp64 [B, L], residual_noise [B, L, R, C] and
//        residual_uniforms fp64 [B, L, R]
//   options: cfg_scale, schedule (of the guidance), temperature; method, and its options by their keys
//        (draft/options.h)
//   out: tokens [B, L, C]; of image i cycles.i int64 [cycles, 3]: its first token, tokens committed, drafts
//        accepted; counts.i int64 [3]: target passes, proposals, fallbacks
#include <ATen/TensorOperators.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <iostream>

#include "base/files.h"
#include "base/json.h"
#include "bundle/tensor_file.h"
#include "draft/options/options.h"
#include "lamplighter/method.h"
#include "pipeline/scheduler/continuous_backend.h"
#include "tests/program.h"

using namespace lamplighter;

namespace {

// Recorded random numbers of an image. Proposals beyond the record are never accepted.
class RecordedNumbers : public RandomNumbers {
 public:
  RecordedNumbers(const Safetensors& file, std::int64_t image) : RandomNumbers(0, 0, 0) {
    const auto read = [&](const char* name, at::ScalarType type) {
      const bool there = file.tensors().count(name) != 0;
      return there ? to_tensor(file.at(name), name, ExitCode::input)[image].to(type).contiguous()
                   : at::Tensor();
    };
    order_ = read("order", at::kLong);
    start_ = read("start", at::kFloat);
    noise_ = read("noise", at::kFloat);
    uniforms_ = read("uniforms", at::kDouble);
    residual_noise_ = read("residual_noise", at::kFloat);
    residual_uniforms_ = read("residual_uniforms", at::kDouble);
  }

  std::vector<std::int64_t> order(std::int64_t positions) const override {
    const auto* all = order_.const_data_ptr<std::int64_t>();
    return {all, all + positions};
  }
  void start(std::int64_t position, float* out) const override { copy(start_[position], out); }
  void noise(std::int64_t position, float* out) const override { copy(noise_[position], out); }
  double verification(std::int64_t position) const override { return uniforms_[position].item<double>(); }
  void proposals(std::int64_t position, std::int64_t first, std::int64_t count, float* normals,
                 double* uniforms) const override {
    const std::int64_t channels = start_.size(1), there = residual_uniforms_.size(1);
    const std::int64_t known = std::clamp<std::int64_t>(there - first, 0, count);
    std::fill_n(normals, count * channels, 0.0F);
    std::fill_n(uniforms, count, 1.0);
    if (known == 0) return;
    copy(residual_noise_[position].narrow(0, first, known), normals);
    copy(residual_uniforms_[position].narrow(0, first, known), uniforms);
  }

 private:
  template <class T>
  static void copy(const at::Tensor& numbers, T* out) {
    std::copy_n(numbers.const_data_ptr<T>(), numbers.numel(), out);
  }

  at::Tensor order_, start_, noise_, uniforms_, residual_noise_, residual_uniforms_;
};

struct Run {
  SamplingOptions sampling;
  MethodOptions method;
};

Run read_run(const std::string& path, Manifest& manifest) {
  const Json json = parse_json(read_file(path), path, ExitCode::input);
  JsonReader reader(json, path, ExitCode::input);
  Run run{manifest.sampling, {}};
  run.sampling.cfg_scale = static_cast<float>(reader.number("cfg_scale"));
  run.sampling.temperature = static_cast<float>(reader.number("temperature"));
  manifest.schedule.kind = reader.text("schedule");
  run.method = read_options(reader);
  run.method.method = reader.text("method");
  reader.finish();
  return run;
}

void report(const ContinuousImage& image, std::map<std::string, at::Tensor>& out) {
  const std::string number = std::to_string(image.number);
  const Statistics& statistics = image.statistics;
  std::vector<std::int64_t> cycles;
  for (const Cycle& cycle : statistics.cycles)
    cycles.insert(cycles.end(), {cycle.first, cycle.committed, cycle.accepted});
  out["cycles." + number] = at::tensor(cycles, at::kLong).view({-1, 3});
  out["counts." + number] =
      at::tensor({statistics.target_passes, statistics.proposals, statistics.fallbacks}, at::kLong);
}

void run(char** arguments) {
  Manifest manifest = read_manifest(arguments[1]);
  const Safetensors file = Safetensors::read(arguments[2], ExitCode::input);
  const Run asked = read_run(arguments[4], manifest);
  const Grid& grid = find_grid(manifest, 0, 0);
  ContinuousNetworks networks(manifest, {c10::kCPU, c10::kFloat});
  const ContinuousRun run = networks.run_of(resolve_method(asked.method, manifest), grid);
  const at::Tensor classes = to_tensor(file.at("class_ids"), "class_ids", ExitCode::input);
  const std::int64_t count = classes.size(0);
  std::vector<std::unique_ptr<ContinuousImage>> images;
  for (std::int64_t i = 0; i < count; ++i) {
    ResolvedRequest request;
    request.grid = &grid;
    request.sampling = asked.sampling;
    request.class_id = classes[i].item<std::int64_t>();
    ContinuousRequest recorded = to_continuous(manifest, request);
    recorded.samples = std::make_shared<const RecordedNumbers>(file, i);
    images.push_back(std::make_unique<ContinuousImage>(run.shape, i, recorded, run.target->device()));
  }
  std::vector<ContinuousImage*> active;
  do {
    active.clear();
    for (const auto& image : images) {
      if (!image->is_complete()) active.push_back(image.get());
    }
    if (!active.empty()) advance(run, active);
  } while (!active.empty());
  std::vector<at::Tensor> tokens;
  std::map<std::string, at::Tensor> out;
  for (const auto& image : images) {
    tokens.push_back(image->latents);
    report(*image, out);
  }
  out["tokens"] = at::stack(tokens);
  write_tensors(arguments[3], out);
}

}  // namespace

int main(int count, char** arguments) {
  return lamplighter::run_program("golden_continuous BUNDLE IN.safetensors OUT.safetensors OPTIONS.json",
                                  count == 5, [&] { run(arguments); });
}
