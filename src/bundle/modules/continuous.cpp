#include "bundle/modules/continuous.h"

#include <ATen/ops/full.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <limits>
#include <sstream>
#include <utility>

#include "base/files.h"
#include "base/format.h"
#include "bundle/modules/module.h"
#include "lamplighter/error.h"

namespace lamplighter {
namespace {

class ContinuousArchive : public ContinuousModel {
 public:
  ContinuousArchive(const Manifest& manifest, const ModuleEntry& entry, std::string role,
                    const Placement& placement)
      : role_(std::move(role)),
        module_(manifest.directory, entry, role_, {"context", "denoise"}, {placement.device, c10::kFloat}) {
    check(manifest);
  }

  at::Tensor context(const at::Tensor& latents, const at::Tensor& visible,
                     const at::Tensor& classes) const override {
    return module_("context", {latents, visible, classes});
  }

  Chain denoise(const at::Tensor& z, const at::Tensor& unconditional, const at::Tensor& scale,
                const at::Tensor& start, const at::Tensor& noise,
                const at::Tensor& temperature) const override {
    std::vector<at::Tensor> results =
        module_.call("denoise", {z, unconditional, scale, start, noise, temperature});
    if (results.size() != 3)
      fail("denoise", counted(results.size(), "result"), "mean, deviation and log deviations");
    return {std::move(results[0]), std::move(results[1]), std::move(results[2])};
  }

  c10::Device device() const override { return module_.placement().device; }

 private:
  [[noreturn]] void fail(const std::string& method, const std::string& got,
                         const std::string& expected) const {
    throw Error(ExitCode::bundle, role_ + "." + method + ": got " + got + ", expected " + expected);
  }

  void require(const char* method, const at::Tensor& tensor, const std::vector<std::int64_t>& sizes,
               c10::ScalarType dtype) const {
    if (tensor.sizes() == at::IntArrayRef(sizes) && tensor.scalar_type() == dtype) return;
    std::ostringstream got, expected;
    got << c10::toString(tensor.scalar_type()) << ' ' << tensor.sizes();
    expected << c10::toString(dtype) << ' ' << at::IntArrayRef(sizes);
    fail(method, got.str(), expected.str());
  }

  // The fields that an archive can disagree with.
  static std::string sizes_of(const Manifest& manifest) {
    return join_path(manifest.directory, "manifest.json") + " has prompt.classes " +
           std::to_string(manifest.prompt->classes) + ", target.hidden " +
           std::to_string(manifest.target.hidden) + ", tokens.channels " +
           std::to_string(manifest.tokens.channels) + ", grids of " +
           std::to_string(manifest.grids.front().tokens()) + " tokens and diffusion.steps " +
           std::to_string(manifest.diffusion.steps);
  }

  // Torch's message about sizes that do not match names neither of them.
  void check(const Manifest& manifest) const {
    try {
      check_classes(manifest.prompt->classes);
      generate_one(manifest);
    } catch (const Error& error) {
      if (error.code() != ExitCode::bundle) throw;
      throw Error(ExitCode::bundle, std::string(error.what()) + "; " + sizes_of(manifest));
    }
  }

  // A class index of another network would go unnoticed.
  void check_classes(std::int64_t classes) const {
    const at::Tensor labels = module_.buffer("labels");
    if (labels.defined() && labels.dim() > 0 && labels.size(0) != classes + 1)
      fail("context", counted(labels.size(0) - 1, "class"), std::to_string(classes));
  }

  // Generates the last position of an image without a class. The first step's noise is NaN, so the token must
  // be NaN: a chain of fewer steps would not read it.
  void generate_one(const Manifest& manifest) const {
    const std::int64_t positions = manifest.grids.front().tokens(), channels = manifest.tokens.channels;
    const std::int64_t steps = manifest.diffusion.steps;
    const auto numbers = at::dtype(at::kFloat).device(device());
    const at::Tensor visible = at::ones({1, positions}, numbers).to(at::kBool);
    visible.select(1, positions - 1).fill_(false);
    const at::Tensor z = context(at::zeros({1, positions, channels}, numbers), visible,
                                 at::full({1}, manifest.prompt->classes, numbers).to(at::kLong));
    const std::int64_t width = role_ == "target" ? manifest.target.hidden : z.size(-1);
    require("context", z, {1, positions, width}, at::kFloat);
    const at::Tensor row = z.select(1, positions - 1), one = at::ones({1}, numbers);
    const at::Tensor noise = at::zeros({1, steps, channels}, numbers);
    noise.select(1, steps - 1).fill_(std::numeric_limits<float>::quiet_NaN());
    const Chain chain = denoise(row, row.narrow(0, 0, 0), one, at::zeros({1, channels}, numbers), noise, one);
    require("denoise", chain.mean, {1, channels}, at::kFloat);
    require("denoise", chain.deviation, {1, channels}, at::kFloat);
    require("denoise", chain.log_deviations, {1, channels}, at::kDouble);
    if (!chain.mean.isnan().all().item<bool>())
      fail("denoise", "fewer denoising steps", std::to_string(steps));
  }

  std::string role_;
  Module module_;
};

}  // namespace

std::int64_t context_bytes(const Manifest& manifest, const Grid& grid) {
  const std::int64_t numbers = manifest.tokens.channels + 5 * manifest.target.hidden;
  return grid.tokens() * numbers * static_cast<std::int64_t>(sizeof(float));
}

std::unique_ptr<ContinuousModel> load_continuous_target(const Manifest& manifest,
                                                        const Placement& placement) {
  return std::make_unique<ContinuousArchive>(manifest, manifest.modules.at("target"), "target", placement);
}

std::unique_ptr<ContinuousModel> load_continuous_drafter(const Manifest& manifest, const std::string& name,
                                                         const Placement& placement) {
  return std::make_unique<ContinuousArchive>(manifest, manifest.drafters.at(name).module, "drafter " + name,
                                             placement);
}

}  // namespace lamplighter
