#pragma once

#include "kernels/common/cuda/rows.h"
#include "kernels/sampling/cluster_filter.h"
#include "kernels/step/window_step_body.h"

// The kernels of window_step.
namespace lamplighter {
namespace {

// One row in its cluster: the verification of verify_row() on the lists of what the filters leave.
template <class Shape>
class WindowVerification {
 public:
  using Row = sampling::ClusterRow<Shape>;

  __device__ WindowVerification(Row& row, const WindowStepArgs& args, const step::WindowRow& window)
      : row_(row), args_(args), window_(window) {}

  // False where lists do not serve. The verdict is in block 0 after the next sync(), but for the tokens that
  // the cluster samples: Row::token(0) is the last one, Row::token(1) the next.
  __device__ bool verify() {
    using sampling::ClusterFilter;
    const sampling::ClusterFiltered filtered =
        sampling::filter_in_cluster(row_, args_.filter, window_.number);
    if (filtered.outcome != ClusterFilter::listed) return filtered.outcome == ClusterFilter::no_distribution;
    statistics_ = filtered.statistics;
    listed_ = true;
    if (!(args_.temperature[window_.image] > 0.0F)) {
      row_.take_best();
      greedy_ = true;
    }
    mass_ = row_.weigh();
    if (!greedy_) sample();
    return true;
  }

  // By block 0, after a sync().
  __device__ WindowVerdict verdict() const {
    WindowVerdict found = step::no_verdict(args_, window_);
    if (!listed_) return found;
    found.last = row_.token(0);
    if (greedy_) {
      found.accepts = found.last == window_.token ? 1 : 0;
      if (!window_.stays) found.next = found.last;
    } else {
      found.accepts = accepts_ ? 1 : 0;
      if (!window_.stays) found.next = keeps_ ? window_.token : row_.token(1);
    }
    return found;
  }

  // Leaves the row for the next cycle; by all blocks, when none reads the place any more.
  __device__ void leave() {
    if (!listed_ || window_.stays) return;
    const int64_t first = row_.first(), vocabulary = args_.filter.logits.vocabulary;
    const int64_t count = vocabulary - first < Shape::kTokens ? vocabulary - first : Shape::kTokens;
    if (count > 0) step::leave_logits(row_.executor(), args_, window_, first, count);
    if (row_.rank() != 0 || threadIdx.x != 0) return;
    args_.statistics[window_.place] = statistics_;
    args_.masses[window_.place] = mass_;
  }

 private:
  // What the row gives token i.
  __device__ float target_of(int64_t i) const {
    return sampling::with_guided_logits(
        args_.filter.logits, window_.number, statistics_.guidance, [&](auto logits) {
          const sampling::Cut cut = {statistics_.floor, static_cast<int>(statistics_.first),
                                     static_cast<int>(statistics_.last)};
          return sampling::Probability<decltype(logits)>{logits, statistics_.largest, statistics_.scale,
                                                         statistics_.norm, cut}(static_cast<int>(i));
        });
  }

  // use(d), d(i) being what the draft was sampled from.
  template <class Use>
  __device__ void with_draft(Use use) const {
    if (window_.guessed) {
      use([&](int64_t i) { return step::guess_probability(args_, window_.token, i); });
    } else {
      sampling::with_probabilities(step::kept_rows(args_), window_.place,
                                   [&](auto p) { use([&](int64_t i) { return p(static_cast<int>(i)); }); });
    }
  }

  __device__ void sample() {
    const double scale = verification::make_row(nullptr, mass_).scale;
    bool tests = false;  // whether the draft can be accepted, so that a rejection leaves less of the target
    double draft_scale = 0;
    if (window_.token >= 0) {
      float own = 0;
      with_draft([&](auto d) { own = d(window_.token); });
      const double total = window_.guessed ? 1.0 : args_.masses[window_.place];
      tests = own > 0.0F && total > verification::kSmallestMass;
      if (tests) {
        draft_scale = 1.0 / total;
        const double tested = static_cast<double>(own) * draft_scale;
        const double target = static_cast<double>(target_of(window_.token)) * scale;
        accepts_ = static_cast<double>(window_.uniform_accept) * tested < target;
        keeps_ = args_.keep && static_cast<double>(window_.uniform_keep) * tested < target;
      }
    }
    const bool last = !accepts_, next = !keeps_ && !window_.stays;
    const bool next_from_left = tests && args_.keep;
    if (last && !tests) row_.sample_weighed(window_.uniform_last, 0);
    if (next && !next_from_left) row_.sample_weighed(window_.uniform_next, 1);
    if (!tests || !(last || (next && next_from_left))) return;
    reject(scale, draft_scale);
    if (last) row_.sample_weighed(window_.uniform_last, 0);
    if (next && next_from_left) row_.sample_weighed(window_.uniform_next, 1);
  }

  // Lists what the draft's rejection leaves of the target, as probabilities.
  __device__ void reject(double scale, double draft_scale) {
    double left = 0;
    with_draft([&](auto d) {
      left = row_.change([=](int i, float p) {
        const double r = static_cast<double>(p) * scale - static_cast<double>(d(i)) * draft_scale;
        return static_cast<float>(r > 0.0 ? r : 0.0);
      });
    });
    if (!(left >= verification::kSmallestMass)) {  // rounding: the target without the draft, else the target
      const int64_t token = window_.token;
      left = row_.change([=](int i, float) {
        return i == token ? 0.0F : static_cast<float>(static_cast<double>(target_of(i)) * scale);
      });
    }
    if (!(left >= verification::kSmallestMass)) {
      row_.change([=](int i, float) { return target_of(i); });
      return;
    }
    const double left_scale = verification::make_row(nullptr, left).scale;
    row_.change([=](int, float p) { return static_cast<float>(static_cast<double>(p) * left_scale); });
  }

  Row& row_;
  const WindowStepArgs& args_;
  const step::WindowRow& window_;
  RowStatistics statistics_ = {};
  double mass_ = 0;
  bool listed_ = false, greedy_ = false, accepts_ = false, keeps_ = false;
};

// Whether this block is the last one of its image to come here. Called by one block for each row.
template <class Storage>
__device__ bool is_last_row(const WindowStepArgs& args, int64_t image, Storage& flag) {
  __syncthreads();  // all threads have written
  if (threadIdx.x == 0) {
    __threadfence();
    flag = atomicAdd(&args.finished[image], 1U) + 1 == static_cast<uint32_t>(args.filter.logits.rows) ? 1 : 0;
    if (flag != 0) args.finished[image] = 0;
    __threadfence();
  }
  __syncthreads();
  return flag != 0;
}

// verify_row() with rows in memory. Not inlined: its registers would make a cluster spill.
template <class Executor>
__device__ __attribute__((noinline)) WindowVerdict verify_in_memory(Executor& executor,
                                                                    const WindowStepArgs& args,
                                                                    const step::WindowRow& window,
                                                                    float* memory) {
  return step::verify_row(executor, args, window, true, true,
                          memory + window.number * window_step_floats(args.filter.logits.vocabulary));
}

// A cluster for each row. memory: window_step_floats() for each.
template <class Shape>
__global__ void __launch_bounds__(Shape::kThreads, 1)
    window_step_cluster_kernel(const __grid_constant__ WindowStepArgs args, float* memory) {
  using Row = sampling::ClusterRow<Shape>;
  auto& storage = *reinterpret_cast<typename Row::Storage*>(shared_memory());
  Row row(storage, args.filter.logits.vocabulary);
  let_next_kernel_start();
  wait_for_earlier_kernels();
  const int64_t nodes = args.filter.logits.rows, number = blockIdx.x / Shape::kBlocks;
  const step::WindowRow window = step::window_row(args, number / nodes, number % nodes);
  WindowVerification<Shape> found(row, args, window);
  const bool verified = found.verify();
  row.sync();  // from here on no block reads the memory of another one, or the place of the row
  if (verified) found.leave();
  if (row.rank() != 0) return;
  const WindowVerdict verdict =
      verified ? found.verdict() : verify_in_memory(row.executor(), args, window, memory);
  if (threadIdx.x == 0) args.verdicts[number] = verdict;
  if (!is_last_row(args, window.image, storage.cell)) return;
  step::finish_window(args, window.image, threadIdx.x, Shape::kThreads, [] { __syncthreads(); });
}

// A block for each row, where a row fits no cluster.
__global__ void __launch_bounds__(kRowThreads)
    window_step_kernel(const __grid_constant__ WindowStepArgs args, float* memory) {
  __shared__ BlockStorage storage;
  __shared__ int last;
  RowExecutor executor(&storage);
  const int64_t nodes = args.filter.logits.rows, number = blockIdx.x;
  const step::WindowRow window = step::window_row(args, number / nodes, number % nodes);
  const WindowVerdict verdict = verify_in_memory(executor, args, window, memory);
  if (threadIdx.x == 0) args.verdicts[number] = verdict;
  if (!is_last_row(args, window.image, last)) return;
  step::finish_window(args, window.image, threadIdx.x, kRowThreads, [] { __syncthreads(); });
}

}  // namespace
}  // namespace lamplighter
