#include "image/acceptance_map.h"

#include <filesystem>
#include <utility>

#include "base/format.h"
#include "draft/options/options.h"
#include "lamplighter/sinks.h"
#include "tree/tree.h"

namespace lamplighter {
namespace {

// For example "lantern++ chain-5 (k 10, lambda 3)".
std::string words_of(const MethodOptions& method) {
  std::string words = method.method;
  if (!method.tree.empty()) words += " " + std::filesystem::path(tree_name(method.tree)).filename().string();
  const std::string numbers = number_words(method);
  return numbers.empty() ? words : words + " (" + numbers + ")";
}

// One figure with all images, how their tokens were committed, and a line with the method.
class AcceptanceSink : public Sink {
 public:
  using Arrange = Figure (*)(const std::vector<AcceptanceGrid>& grids, const std::string& caption,
                             Typeface typeface);

  AcceptanceSink(Arrange arrange, std::string path, bool overwrite)
      : arrange_(arrange), path_(std::move(path)), overwrite_(overwrite) {}

  void image(std::size_t /*index*/, const Request& /*request*/, const Result& result) override {
    grids_.push_back(acceptance_grid(result));
    const std::string method = words_of(result.method);
    if (!method_.empty() && method != method_) mixed_ = true;
    method_ = method;
    tokens_ += result.statistics.tokens;
    passes_ += result.statistics.target_passes;
  }

  void done() override { write_figure(path_, arrange_(grids_, caption(), typeface_of(path_)), overwrite_); }
  void stopped() override {
    if (!grids_.empty()) done();
  }

 private:
  std::string caption() const {
    const std::string compression =
        format_fixed(static_cast<double>(tokens_) / static_cast<double>(passes_), 2);
    return (mixed_ ? "several methods" : method_) + ": " + counted(tokens_, "token") + " in " +
           counted(passes_, "target pass") + ", S = " + compression;
  }

  Arrange arrange_;
  std::string path_, method_;
  bool overwrite_, mixed_ = false;
  std::vector<AcceptanceGrid> grids_;
  std::int64_t tokens_ = 0, passes_ = 0;
};

}  // namespace

std::unique_ptr<Sink> acceptance_map_sink(std::string path, bool overwrite) {
  const auto arrange = [](const std::vector<AcceptanceGrid>& grids, const std::string& caption,
                          Typeface typeface) { return acceptance_figure(grids, caption, typeface); };
  return std::make_unique<AcceptanceSink>(arrange, std::move(path), overwrite);
}

std::unique_ptr<Sink> growth_sink(std::string path, bool overwrite) {
  return std::make_unique<AcceptanceSink>(growth_figure, std::move(path), overwrite);
}

}  // namespace lamplighter
