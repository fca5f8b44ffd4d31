// Runs the loop of continuous tokens on recorded random numbers: golden_continuous BUNDLE IN.safetensors
// OUT.safetensors OPTIONS.json. B pictures side by side, L positions, C channels, T denoising steps, R
// proposals for a token.
//   in:  class_ids int64 [B], the number of classes for none; order int64 [B, L]; start [B, L, C]; noise
//        [B, L, T, C]; where drafts are judged also uniforms fp64 [B, L], residual_noise [B, L, R, C] and
//        residual_uniforms fp64 [B, L, R]
//   options: cfg_scale, schedule (of the guidance), temperature; method, and its options by their keys
//        (propose/options.h)
//   out: tokens [B, L, C]; of picture i cycles.i int64 [cycles, 3]: its first token, tokens committed, drafts
//        accepted; counts.i int64 [3]: passes of the target, proposals, fallbacks
#include <ATen/TensorOperators.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <iostream>

#include "base/files.h"
#include "base/json.h"
#include "bundle/tensor_file.h"
#include "lamplighter/method.h"
#include "pipeline/drawing/continuous_drawing.h"
#include "propose/options/options.h"

using namespace lamplighter;

namespace {

// What was recorded of a picture. More proposals than that are never accepted.
class RecordedDraws : public Draws {
 public:
  RecordedDraws(const Safetensors& file, std::int64_t picture) : Draws(0, 0, 0) {
    const auto read = [&](const char* name, at::ScalarType type) {
      const bool there = file.tensors().count(name) != 0;
      return there ? to_tensor(file.at(name), name, ExitCode::input)[picture].to(type).contiguous()
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
    const auto* places = order_.const_data_ptr<std::int64_t>();
    return {places, places + positions};
  }
  void start(std::int64_t position, float* out) const override { copy(start_[position], out); }
  void noise(std::int64_t position, float* out) const override { copy(noise_[position], out); }
  double judging(std::int64_t position) const override { return uniforms_[position].item<double>(); }
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

void report(const ContinuousPicture& picture, std::map<std::string, at::Tensor>& out) {
  const std::string number = std::to_string(picture.number);
  const Statistics& statistics = picture.statistics;
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
  ContinuousModels models(manifest, {c10::kCPU, c10::kFloat});
  const ContinuousRun run = models.run_of(resolve_method(asked.method, manifest), grid);
  const at::Tensor classes = to_tensor(file.at("class_ids"), "class_ids", ExitCode::input);
  const std::int64_t count = classes.size(0);
  std::int64_t next = 0;
  std::vector<at::Tensor> tokens(static_cast<std::size_t>(count));
  std::map<std::string, at::Tensor> out;
  draw_continuous(
      run, count,
      [&]() -> std::optional<ContinuousRequest> {
        if (next == count) return std::nullopt;
        ResolvedRequest request;
        request.grid = &grid;
        request.sampling = asked.sampling;
        request.class_id = classes[next].item<std::int64_t>();
        ContinuousRequest draw = to_draw(manifest, request);
        draw.draws = std::make_shared<const RecordedDraws>(file, next++);
        return draw;
      },
      [&](ContinuousPictures& pictures) {
        for (const auto& picture : pictures) {
          if (!picture->is_complete()) continue;
          tokens[static_cast<std::size_t>(picture->number)] = picture->latents;
          report(*picture, out);
        }
        return true;
      });
  out["tokens"] = at::stack(tokens);
  write_tensors(arguments[3], out);
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 5) {
    std::cerr << "usage: golden_continuous BUNDLE IN.safetensors OUT.safetensors OPTIONS.json\n";
    return 2;
  }
  try {
    run(arguments);
  } catch (const std::exception& error) {
    std::cerr << "golden_continuous: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
