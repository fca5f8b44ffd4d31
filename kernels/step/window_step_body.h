#pragma once

#include "kernels/commit/commit_body.h"
#include "kernels/sampling/sampling_body.h"
#include "kernels/step/step_uniform.h"
#include "kernels/step/window_step.h"
#include "kernels/window/window_body.h"

// window_step for one image, written once for every executor; meaning in kernels/step/window_step.h.
namespace lamplighter::step {

using verification::Row;

// A row of the pass, and the draft behind it.
struct WindowRow {
  int64_t image, node, nodes;
  int64_t number;  // of the row among the rows of all images
  int64_t place;   // where the draft's distribution is, likewise
  int64_t token;   // of the draft; -1: none was scored
  bool guessed;    // the draft
  bool stays;      // a draft that was not scored stands behind the row
  bool reached;    // the walk can come here
  float uniform_last, uniform_accept, uniform_keep, uniform_next;
};

// The numbers of Purpose of kernels/sampling/sampling_args.h, which includes Torch.
constexpr int64_t kAcceptPurpose = 1, kWindowPurpose = 3, kFillPurpose = 4;

LAMPLIGHTER_INLINE WindowRow window_row(const WindowStepArgs& args, int64_t image, int64_t node) {
  WindowRow row{};
  const int64_t nodes = row.nodes = args.filter.logits.rows;
  const int64_t steps = args.commit.steps[image], seed = args.seeds[image];
  row.image = image;
  row.node = node;
  row.number = image * nodes + node;
  row.place = image * nodes + (steps + node) % nodes;
  const int64_t* tokens = args.commit.tokens + image * nodes;
  const bool has_draft = node + 1 < nodes;
  row.token = has_draft ? tokens[node + 1] : -1;
  if (row.token >= args.filter.logits.vocabulary) row.token = -1;
  row.guessed = has_draft && args.guessed[row.number + 1];
  row.stays = has_draft && tokens[node + 1] < 0;
  row.reached = node == 0 || tokens[node] >= 0;
  row.uniform_last = uniform_of(seed, steps, kAcceptPurpose, 0);
  row.uniform_accept = uniform_of(seed, steps, kAcceptPurpose, node + 1);
  row.uniform_keep = uniform_of(seed, steps, kWindowPurpose, node + 1);
  row.uniform_next = uniform_of(seed, steps, kWindowPurpose, nodes + node);
  return row;
}

// Of a row that is no distribution.
LAMPLIGHTER_INLINE WindowVerdict no_verdict(const WindowStepArgs& args, const WindowRow& row) {
  if (!row.stays) return {0, -1, -1, 0};
  return {0, -1, args.window[row.number + 1], row.guessed ? 1 : 0};
}

LAMPLIGHTER_INLINE DistributionRows target_rows(const WindowStepArgs& args) {
  DistributionRows rows = args.filter.logits;
  rows.statistics = args.filter.out;
  return rows;
}

LAMPLIGHTER_INLINE DistributionRows kept_rows(const WindowStepArgs& args) {
  DistributionRows rows = args.filter.logits;
  rows.values = args.logits;
  rows.statistics = args.statistics;
  return rows;
}

// What a guess comes from gives token i.
LAMPLIGHTER_INLINE float guess_probability(const WindowStepArgs& args, int64_t guess, int64_t i) {
  if (args.fill.fill == WindowFill::uniform) return window::even_probability(i, args.fill.codes);
  return i == guess ? 1.0F : 0.0F;
}

// The draft behind a row as a tree of two nodes for verify_tree's body, and its distribution in `values`
// [vocabulary].
struct OneDraft {
  VerifyArgs args;
  int64_t tokens[2], parents[2], rows[2];
  float uniforms[2];

  template <class Executor>
  LAMPLIGHTER_INLINE OneDraft(Executor& executor, const WindowStepArgs& step, const WindowRow& row,
                              float* values)
      : args{}, tokens{0, row.token}, parents{-1, 0}, rows{0, -1}, uniforms{} {
    const auto n = static_cast<int>(step.filter.logits.vocabulary);
    if (row.token >= 0 && row.guessed) {
      executor.for_each(n, [=](int i) { values[i] = guess_probability(step, row.token, i); });
    } else if (row.token >= 0) {
      sampling::read_probabilities(executor, kept_rows(step), row.place, values);
    }
    args.draft = {values, nullptr, 1, n, false, ElementType::kFloat32};
    args.tokens = tokens;
    args.parents = parents;
    args.draft_rows = rows;
    args.uniforms = uniforms;
    args.images = args.depth = args.levels = 1;
    args.nodes = args.uniform_count = 2;
    args.vocabulary = n;
    args.rule = Rule::exact;
    args.sampled = true;
  }
  OneDraft(const OneDraft&) = delete;
  OneDraft& operator=(const OneDraft&) = delete;

  // Whether the draft stays, and the token that stands in its place where it does not. spare [vocabulary].
  struct Tested {
    bool stays;
    int64_t token;
  };
  template <class Executor>
  LAMPLIGHTER_INLINE Tested test(Executor& executor, const Row& target, float accept, float sample,
                                 float* spare) {
    uniforms[1] = accept;
    const verification::Cycle cycle(args, 0, nullptr);
    verification::Buffers buffers = {spare, spare};  // of one child there is one residual
    int tests = 0;
    const verification::Verification verified =
        verification::verify_children<verification::NoBugs>(executor, cycle, target, 0, 1, buffers, tests);
    if (verified.accepted > 0) return {true, tokens[1]};
    return {false,
            verification::sample_from(executor, verified.left, cycle.vocabulary, sample, false, spare)};
  }
};

// to = from [count], by all threads.
template <class Unit, class Executor>
LAMPLIGHTER_INLINE void copy_units(Executor& executor, void* to, const void* from, int count) {
  const Unit* source = static_cast<const Unit*>(from);
  Unit* target = static_cast<Unit*>(to);
  executor.for_each(count, [=](int i) { target[i] = source[i]; });
}

// Copies the logits [first, first + count) of a row to its place.
template <class Executor>
LAMPLIGHTER_INLINE void leave_logits(Executor& executor, const WindowStepArgs& args, const WindowRow& row,
                                     int64_t first, int64_t count) {
  struct Wide {
    uint32_t words[4];
  };
  const DistributionRows& rows = args.filter.logits;
  const int64_t size = rows.type == ElementType::kFloat32 ? 4 : 2, parts = rows.guided ? 2 : 1;
  const bool wide = rows.vocabulary * size % 16 == 0 && first * size % 16 == 0 && count * size % 16 == 0;
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t above = (row.image * (parts - 1) + part) * row.nodes;  // rows of other sequences before
    const auto at = [=](int64_t index) { return ((above + index) * rows.vocabulary + first) * size; };
    const char* from = static_cast<const char*>(rows.values) + at(row.number);
    char* to = static_cast<char*>(args.logits) + at(row.place);
    if (wide && reinterpret_cast<uintptr_t>(from) % 16 == 0 && reinterpret_cast<uintptr_t>(to) % 16 == 0) {
      copy_units<Wide>(executor, to, from, static_cast<int>(count * size / 16));
    } else {
      copy_units<uint16_t>(executor, to, from, static_cast<int>(count * size / 2));
    }
  }
}

// The verification of one row. walks, renews: what is asked for. memory: window_step_floats().
template <class Executor>
LAMPLIGHTER_INLINE WindowVerdict verify_row(Executor& executor, const WindowStepArgs& args,
                                            const WindowRow& row, bool walks, bool renews, float* memory) {
  const int64_t n = args.filter.logits.vocabulary;
  WindowVerdict verdict = no_verdict(args, row);
  renews = renews && !row.stays;
  if (!renews && !(walks && row.reached)) return verdict;
  sampling::guide_and_filter_row(executor, args.filter, row.number, memory);
  const Row target = verification::read_row(executor, target_rows(args), row.number, memory);
  if (target.bad()) return verdict;
  if (!(args.temperature[row.image] > 0.0F)) {
    const int best = verification::most_probable(executor, target.values, static_cast<int>(n));
    verdict.accepts = best == row.token ? 1 : 0;
    verdict.last = best;
    if (renews) verdict.next = best;
  } else {
    OneDraft draft(executor, args, row, memory + n);
    float* spare = memory + 2 * n;
    if (walks) {
      const OneDraft::Tested tested =
          draft.test(executor, target, row.uniform_accept, row.uniform_last, spare);
      verdict.accepts = tested.stays ? 1 : 0;
      verdict.last = tested.token;
    }
    if (renews && args.keep) {
      verdict.next = draft.test(executor, target, row.uniform_keep, row.uniform_next, spare).token;
    } else if (renews) {
      verdict.next =
          verification::sample_from(executor, target, static_cast<int>(n), row.uniform_next, false, spare);
    }
  }
  if (!renews) return verdict;
  leave_logits(executor, args, row, 0, n);
  executor.for_each(1, [&](int) {
    args.statistics[row.place] = args.filter.out[row.number];
    args.masses[row.place] = target.total;
  });
  return verdict;
}

// Walks, commits, and makes the next window, when all rows of the image are verified. Every one of `lanes`
// threads calls it with its number; sync() is a barrier of theirs.
template <class Sync>
LAMPLIGHTER_INLINE void finish_window(const WindowStepArgs& args, int64_t image, int64_t lane, int64_t lanes,
                                      Sync sync) {
  const int64_t nodes = args.filter.logits.rows, steps = args.commit.steps[image];
  // Other blocks wrote them while this one ran.
  const volatile WindowVerdict* verdicts = args.verdicts + image * nodes;
  int64_t count = 0;
  while (count + 1 < nodes && verdicts[count].accepts != 0) ++count;
  int64_t row_end = -1;  // the pass's row of one behind the last token
  if (args.logits_rows != nullptr && args.logits_rows[image * nodes + count] != count)
    row_end = args.logits_rows[image * nodes + count];
  for (int64_t j = lane; j < nodes; j += lanes) args.path[image * nodes + j] = j <= count ? j : -1;
  for (int64_t j = lane; j <= nodes; j += lanes)
    args.kept_rows[image * (nodes + 1) + j] = j <= count ? j : j == count + 1 ? row_end : -1;
  if (lane == 0) args.kept_count[image] = count + (row_end < 0 ? 0 : 1);
  sync();
  Committed c{};
  c.tokens = args.commit.tokens + image * nodes;
  c.path = args.path + image * nodes;
  c.count = count;
  c.token = verdicts[count].last;
  c.ended = row_end < 0 ? 0 : 1;
  c.steps = steps;
  c.advance = advance(count, steps, args.commit.total);
  commit_to(args.commit, c, 0, image, lane, lanes, sync);
  sync();
  const auto token_of = [=](int64_t entry) -> int64_t {
    const int64_t node = count + 1 + entry;
    return node < nodes ? verdicts[node].next : -1;
  };
  const int64_t each = args.commit.sequences / args.commit.images;
  for (int64_t n = lane; n < nodes; n += lanes) {
    int64_t token = n == 0 ? args.commit.root[image] : token_of(n - 1);
    bool guessed = n > 0 && token >= 0 && verdicts[count + n].guessed != 0;
    if (token < 0) {
      const float uniform = uniform_of(args.seeds[image], args.commit.steps[image], kFillPurpose, n - 1);
      token = window::guess(args.fill, image, n - 1, uniform, token_of, [](int64_t) { return int64_t{0}; });
      guessed = true;
    }
    args.window[image * nodes + n] = token;
    args.guessed[image * nodes + n] = guessed;
    for (int64_t s = image * each; s < (image + 1) * each; ++s) {
      args.ids[s * nodes + n] = row_id(token, args.commit.first_image_id);
      args.positions[s * nodes + n] = row_position(args.commit.position[s] + n, args.commit.last_position);
    }
  }
}

}  // namespace lamplighter::step
