#pragma once

#include "kernels/sampling/cluster_row.h"
#include "kernels/sampling/sampling_body.h"

// guide_and_filter of a row in a cluster.
namespace lamplighter::sampling {

enum class ClusterFilter {
  listed,           // what stays is listed
  no_distribution,  // nothing stays
  unfit             // lists do not serve: top-p, and rows with many equal logits where top-k ends
};

struct ClusterFiltered {
  ClusterFilter outcome;
  RowStatistics statistics;  // unless unfit
};

template <class Shape>
__device__ ClusterFiltered filter_in_cluster(ClusterRow<Shape>& row, const GuideAndFilterArgs& args,
                                             int64_t number) {
  const int64_t image = number / args.logits.rows, top_k = args.top_k[image];
  const float guidance = args.guidance[args.guidance_by_row ? number : image];
  const FilterSteps steps = filter_steps(args.temperature[image], args.top_p[image], args.order);
  const auto n = static_cast<int>(args.logits.vocabulary);
  with_guided_logits(args.logits, number, guidance, [&](auto logits) { row.load(logits); });
  const float largest = row.find_largest();
  if (!(largest < kInfinity && largest > -kInfinity))
    return {ClusterFilter::no_distribution, no_distribution(guidance)};
  if (steps.top_p) return {ClusterFilter::unfit, {}};
  float floor = steps.greedy ? largest : -kInfinity;
  if (!steps.greedy && top_k > 0 && top_k < n) {
    const FoundKth kth = row.kth(top_k);
    if (!kth.found) return {ClusterFilter::unfit, {}};
    floor = kth.value;
  }
  const float norm = row.keep(floor, steps.scale);
  return {ClusterFilter::listed, {guidance, largest, steps.scale, norm, floor, 0.0F, static_cast<float>(n)}};
}

}  // namespace lamplighter::sampling
