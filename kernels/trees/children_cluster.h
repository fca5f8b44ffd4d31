#pragma once

#include "kernels/sampling/cluster_row.h"
#include "kernels/trees/children_body.h"

// sample_children of a row that a cluster has filtered.
namespace lamplighter::children {

template <class Shape>
class ClusterChildren : public sampling::ClusterRow<Shape> {
  using Row = sampling::ClusterRow<Shape>;
  using Row::executor_, Row::kBlocks, Row::kept_, Row::s_;

 public:
  using Row::executor, Row::first, Row::rank, Row::Row, Row::sync;

  // Whether the memory of a row, as sample_children_row() takes it, holds what the blocks leave each other.
  __device__ static bool fits(const SampleChildrenArgs& args) {
    return args.count * kBlocks <= args.rows.vocabulary;
  }

  // As sample_row(), after keep(). Block 0 writes the tokens.
  __device__ void sample(const SampleChildrenArgs& args, int64_t row, void* memory) {
    const auto count = static_cast<int>(args.count);
    const Scratch scratch = scratch_at(memory, args.rows.vocabulary);
    auto* values = reinterpret_cast<double*>(scratch.keys);  // of the best of every block; [V] with `ids`
    int* tokens = scratch.selected;
    list_best(args, row, scratch.values + first(), count, values + rank() * count, tokens + rank() * count);
    sync();
    if (rank() != 0) return;
    // Blocks hold rising ids, so that the first of equal values is the smallest id.
    take_best(values, count * kBlocks, count,
              [&](int place, int nth) { args.tokens[row * count + nth] = place < 0 ? -1 : tokens[place]; });
  }

 private:
  // use(place, nth) with the places of the largest of n values, which are gone then; -1 where none is > 0.
  template <class Use>
  __device__ void take_best(double* values, int n, int count, Use use) {
    for (int nth = 0; nth < count; ++nth) {
      const int best = n > 0 ? executor_.argmax(n, [=](int i) { return values[i]; }) : -1;
      executor_.for_each(1, [&](int) {
        const bool any = best >= 0 && values[best] > 0.0;
        use(any ? best : -1, nth);
        if (any) values[best] = -1.0;
      });
    }
  }

  // The best of this block. values: memory for its list.
  __device__ void list_best(const SampleChildrenArgs& args, int64_t row, double* values, int count,
                            double* best_values, int* best_tokens) {
    const float* probabilities = s_.values;
    const uint16_t* ids = s_.ids;
    const int begin = first();
    with_order(args, row, [&](const auto& order) {
      executor_.for_each(kept_, [=](int i) { values[i] = order.value(begin + ids[i], probabilities[i]); });
    });
    take_best(values, kept_, count, [&](int place, int nth) {
      best_values[nth] = place < 0 ? -1.0 : values[place];
      best_tokens[nth] = place < 0 ? -1 : begin + ids[place];
    });
  }
};

}  // namespace lamplighter::children
