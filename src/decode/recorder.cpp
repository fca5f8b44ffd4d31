#include "decode/recorder.h"

#include <algorithm>

namespace lamplighter {

Recorder::Recorder(const Method& method, std::int64_t images)
    : method_(method), statistics_(static_cast<std::size_t>(images)) {
  const auto depth = static_cast<std::size_t>(method.depth());
  for (Statistics& statistics : statistics_) {
    statistics.batch = static_cast<int>(images);
    statistics.drafted.resize(depth);
    statistics.accepted.resize(depth);
    if (method.is_dynamic()) continue;
    for (std::size_t d = 0; d < depth; ++d) {
      std::int64_t ranks = 0;
      for (const std::int64_t node : method.tree.expanded_level(static_cast<std::int64_t>(d)))
        ranks = std::max(ranks, method.tree.child_count(node));
      statistics.reached.emplace_back(static_cast<std::size_t>(ranks));
    }
  }
}

namespace {

// Nodes of an image's tree at depth 1, 2, ... that hold a token; depths int64 [1 or I, N] and tokens [I, N]
// on the CPU.
std::vector<std::int64_t> nodes_by_depth(const at::Tensor& depths, const at::Tensor& tokens,
                                         std::size_t image, std::size_t count) {
  std::vector<std::int64_t> nodes(count);
  const auto row = static_cast<std::int64_t>(image);
  const std::int64_t* depth =
      depths.const_data_ptr<std::int64_t>() + (depths.size(0) > 1 ? row : 0) * depths.size(1);
  const std::int64_t* token = tokens.const_data_ptr<std::int64_t>() + row * tokens.size(1);
  for (std::int64_t node = 1; node < depths.size(1); ++node) {
    if (depth[node] > 0 && token[node] >= 0) ++nodes[static_cast<std::size_t>(depth[node] - 1)];
  }
  return nodes;
}

}  // namespace

void Recorder::add(const DecodeState& state, const Draft& tree, const Accepted& accepted,
                   const StageTimes& times) {
  const at::Tensor depths = tree.depths.cpu().contiguous(), tokens = tree.tokens.cpu().contiguous();
  const at::Tensor steps = state.steps.cpu(), counts = accepted.count.cpu(), paths = accepted.path.cpu();
  const std::int64_t width = paths.size(1);
  for (std::size_t image = 0; image < statistics_.size(); ++image) {
    Statistics& statistics = statistics_[image];
    const std::int64_t committed = steps.const_data_ptr<std::int64_t>()[image] - statistics.tokens;
    if (committed == 0) continue;  // complete before this cycle
    const std::int64_t count = counts.const_data_ptr<std::int64_t>()[image];
    const std::int64_t first = statistics.tokens;
    statistics.tokens += committed;
    ++statistics.target_passes;
    if (statistics.target_passes == 1) continue;
    statistics.draft_ms += times.draft;
    statistics.verify_ms += times.verify;
    statistics.accept_ms += times.accept;
    statistics.commit_ms += times.commit;
    statistics.cycles.push_back(
        {first, committed, count, times.draft, times.verify, times.accept, times.commit});
    const std::vector<std::int64_t> drafted =
        nodes_by_depth(depths, tokens, image, statistics.drafted.size());
    const std::int64_t* path =
        paths.const_data_ptr<std::int64_t>() + static_cast<std::int64_t>(image) * width;
    for (std::size_t d = 0; d < statistics.drafted.size(); ++d) {
      const bool reached = static_cast<std::int64_t>(d) < count;
      statistics.accepted[d] += reached ? 1 : 0;
      statistics.drafted[d] += drafted[d];
      if (reached && !method_.is_dynamic()) {
        const auto node = static_cast<std::size_t>(path[d + 1]);
        ++statistics.reached[d][static_cast<std::size_t>(method_.tree.rank[node])];
      }
    }
  }
}

}  // namespace lamplighter
