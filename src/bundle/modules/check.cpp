#include "bundle/modules/check.h"

#include <ATen/TensorOperators.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/files.h"
#include "bundle/modules/module.h"
#include "bundle/tensor_file.h"
#include "lamplighter/error.h"

namespace lamplighter {
namespace {

const ModuleEntry& find_module(const Manifest& manifest, const std::string& name) {
  const auto module = manifest.modules.find(name);
  if (module != manifest.modules.end()) return module->second;
  const auto drafter = manifest.drafters.find(name);
  if (drafter != manifest.drafters.end()) return drafter->second.module;
  const auto& text = manifest.text;
  if (text && text->drafters.count(name) != 0) return text->drafters.at(name).module;
  throw Error(ExitCode::bundle, "bundle " + manifest.directory + ": golden record of a module \"" + name +
                                    "\" that the bundle does not have");
}

double largest_difference(const at::Tensor& got, const at::Tensor& expected) {
  if (got.sizes() != expected.sizes()) return std::numeric_limits<double>::infinity();
  if (got.numel() == 0) return 0;
  const double difference = (got.cpu().to(at::kDouble) - expected.to(at::kDouble)).abs().max().item<double>();
  return difference;
}

}  // namespace

std::vector<CheckResult> check_modules(const Manifest& manifest, const c10::Device& device,
                                       const std::function<void(const CheckResult&)>& on_result) {
  std::vector<CheckResult> results;
  if (!manifest.golden) return results;
  const c10::InferenceMode inference;
  const Safetensors file =
      Safetensors::read(join_path(manifest.directory, *manifest.golden), ExitCode::bundle);
  const auto tensor = [&](const std::string& name) {
    return to_tensor(file.at(name), name, ExitCode::bundle);
  };

  std::map<std::string, std::vector<const GoldenRecord*>> by_module;
  for (const GoldenRecord& record : manifest.golden_records) by_module[record.module].push_back(&record);
  for (const auto& [name, records] : by_module) {
    std::vector<std::string> methods;
    for (const GoldenRecord* record : records) methods.push_back(record->method);
    const ModuleEntry& entry = find_module(manifest, name);
    const Module module(manifest.directory, entry, name, methods,
                        {device, stored_bits(entry) == 16 ? c10::kFloat : c10::kBFloat16});
    for (const GoldenRecord* record : records) {
      std::vector<at::Tensor> inputs;
      for (const std::string& input : record->inputs) inputs.push_back(tensor(input).to(device));
      const std::vector<at::Tensor> outputs = module.call(record->method, inputs);
      CheckResult result{record->module, record->method, 0, record->tolerance, record->distance};
      const auto compare = [&](const at::Tensor& got, const std::string& expected) {
        const double difference = largest_difference(got, tensor(expected));
        // A NaN stays: compared with other differences it would be lost.
        if (!std::isnan(result.difference) && !(difference <= result.difference))
          result.difference = difference;
      };
      if (outputs.size() != record->outputs.size())
        result.difference = std::numeric_limits<double>::infinity();
      for (std::size_t i = 0; i < std::min(outputs.size(), record->outputs.size()); ++i) {
        compare(outputs[i], record->outputs[i]);
      }
      for (const std::string& mutated : record->mutated) compare(inputs.back(), mutated);
      results.push_back(result);
      if (on_result) on_result(result);
    }
  }
  return results;
}

}  // namespace lamplighter
