#pragma once

#include "kernels/verify/verify_body.h"
#include "kernels/window/window.h"

// The operators of a window for one entry, written once for every executor; meanings in
// kernels/window/window.h.
namespace lamplighter::window {

using verification::Cycle, verification::Verification, verification::Row;

// to = the row's probabilities, 0 where there is none.
template <class Executor>
LAMPLIGHTER_INLINE void write_row(Executor& executor, const Row& row, int n, float* to) {
  const float* values = row.values;
  if (values == to) return;
  executor.for_each(n, [=](int i) { to[i] = values != nullptr ? values[i] : 0.0F; });
}

// The token behind `node`, whose row is `target`. spare [vocabulary].
template <class Executor>
LAMPLIGHTER_INLINE int64_t renewed(Executor& executor, const Cycle& cycle, const Row& target, int node,
                                   bool keep, float* spare) {
  const bool greedy = !(cycle.args.temperature[cycle.image] > 0.0F);
  Verification verified = {-1, 0, target};
  if (keep && !greedy) {
    verification::Buffers buffers = {spare, spare};  // of one child there is one residual
    int tests = 0;
    verified = verification::verify_children<verification::NoBugs>(executor, cycle, target, node, node + 1,
                                                                   buffers, tests);
    if (verified.accepted > 0) return cycle.token(verified.accepted);
  }
  return verification::sample_from(executor, verified.left, cycle.vocabulary,
                                   cycle.uniform(cycle.nodes + node), greedy, spare);
}

// index: image * L + entry, entries counted from 0. spare [vocabulary].
template <class Executor>
LAMPLIGHTER_INLINE void renew_entry(Executor& executor, const RenewWindowArgs& args, int64_t index,
                                    float* spare) {
  const int64_t length = args.verify.nodes - 1;
  const int64_t image = index / length;
  float* row = args.rows + index * args.verify.vocabulary;
  const Cycle cycle(args.verify, image, row);
  const int64_t node = args.count[image] + 1 + index % length;
  Row target = verification::no_row();
  if (node < args.verify.nodes) target = cycle.target_row(executor, static_cast<int>(node));
  if (target.bad()) target = verification::no_row();
  write_row(executor, target, cycle.vocabulary, row);
  const int64_t token = target.values == nullptr
                            ? -1
                            : renewed(executor, cycle, target, static_cast<int>(node), args.keep, spare);
  executor.for_each(1, [&](int) { args.tokens[index] = token; });
}

// index: image * L + entry. spare [vocabulary].
template <class Executor>
LAMPLIGHTER_INLINE void renew_fan_entry(Executor& executor, const RenewFanArgs& args, int64_t index,
                                        float* spare) {
  const int64_t vocabulary = args.verify.vocabulary;
  const auto n = static_cast<int>(vocabulary);
  const int64_t image = index / args.length;
  float* row = args.rows + index * vocabulary;
  float* left = args.left + index * vocabulary;
  const Cycle cycle(args.verify, image, row);
  const auto node = static_cast<int>(args.nodes[index]);
  const bool greedy = !(args.verify.temperature[image] > 0.0F);
  Row target = verification::no_row();
  if (node >= 0 && node < cycle.nodes) target = cycle.target_row(executor, node);
  if (target.bad()) target = verification::no_row();
  write_row(executor, target, n, row);
  verification::OfficialPac tests({left, spare});
  int kept = -1;
  if (target.values != nullptr && !greedy) kept = tests.kept(executor, cycle, target, node);
  const Row from = greedy || target.values == nullptr ? target : tests.left();
  const double scale = from.given ? 1.0 : from.scale;
  executor.for_each(n, [=](int i) {
    const double p = from.values == nullptr ? 0.0 : static_cast<double>(from.values[i]) * scale;
    left[i] = spare[i] = static_cast<float>(p);
  });
  for (int64_t candidate = 0, used = 0; candidate < args.count; ++candidate) {
    int64_t token = kept;
    if (kept >= 0 && candidate == 0) {
      token = cycle.token(kept);
    } else {
      const float uniform = args.samples[index * args.count + used++];
      token = sampling::sample_token(executor, spare, n, uniform, greedy ? 0.0F : 1.0F);
      executor.sync();  // every thread has looked at the token's probability before it is gone
      if (token >= 0) verification::set_value(executor, spare, token, 0.0F);
    }
    executor.for_each(1, [=](int) { args.candidates[index * args.count + candidate] = token; });
  }
}

// The least k with floor(k / 2^24 * codes) >= code, k / 2^24 being a uniform.
LAMPLIGHTER_INLINE int64_t first_uniform(int64_t code, int64_t codes) {
  return (code * (int64_t{1} << 24) + codes - 1) / codes;
}

// The probability of a code where all are guessed with uniforms.
LAMPLIGHTER_INLINE float even_probability(int64_t code, int64_t codes) {
  return code < codes
             ? static_cast<float>(first_uniform(code + 1, codes) - first_uniform(code, codes)) * 0x1p-24F
             : 0.0F;
}

// A guess for an entry without a token; tokens(k): the token of entry k before any is guessed;
// most_probable(k): the one of its row.
template <class Tokens, class MostProbable>
LAMPLIGHTER_INLINE int64_t guess(const FillWindowArgs& args, int64_t image, int64_t entry, float uniform,
                                 Tokens tokens, MostProbable most_probable) {
  const int64_t position = args.steps[image] + entry;
  const auto random = static_cast<int64_t>(static_cast<double>(uniform) * static_cast<double>(args.codes));
  if (args.fill == WindowFill::above) {
    const bool known = position >= args.columns && position - args.columns < args.steps[image];
    return known ? args.codes_so_far[image * args.codes_so_far_columns + position - args.columns] : random;
  }
  if (args.fill == WindowFill::uniform || args.fill == WindowFill::random || position % args.columns == 0)
    return random;
  int64_t known = entry;  // entries with a token
  while (known > 0 && tokens(known - 1) < 0) --known;
  if (known == 0) return args.left[image];
  return args.fill == WindowFill::repeat ? tokens(known - 1) : most_probable(known - 1);
}

// index: image * L + entry.
template <class Executor>
LAMPLIGHTER_INLINE void fill_entry(Executor& executor, const FillWindowArgs& args, int64_t index) {
  int64_t token = args.tokens[index];
  if (token < 0) {
    const int64_t image = index / args.length;
    const int64_t* tokens = args.tokens + image * args.length;
    token = guess(
        args, image, index % args.length, args.uniforms[index], [=](int64_t k) { return tokens[k]; },
        [&](int64_t k) -> int64_t {
          const float* from = args.rows + (image * args.length + k) * args.vocabulary;
          return executor.argmax(static_cast<int>(args.vocabulary), [=](int i) { return from[i]; });
        });
    const bool even = args.fill == WindowFill::uniform;
    const int64_t codes = args.codes;
    float* row = args.rows + index * args.vocabulary;
    executor.for_each(static_cast<int>(args.vocabulary), [=](int i) {
      if (!even) {
        row[i] = i == token ? 1.0F : 0.0F;
      } else {
        row[i] = even_probability(i, codes);
      }
    });
  }
  executor.for_each(1, [=](int) { args.out[index] = token; });
}

}  // namespace lamplighter::window
