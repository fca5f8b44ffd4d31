#include <algorithm>
#include <iterator>

#include "draft/options/tables.h"
#include "tree/tree.h"
#include "tree/window_fill.h"

namespace lamplighter {

using namespace option_rows;  // NOLINT(google-build-using-namespace)

namespace {

bool verifies_nothing(const Run& run) {
  return run.entry.tree == TreeKind::parallel_rows;
}
bool keeps_window(const Run& run) {
  return run.entry.keeps_window();
}
bool renews_drafts(const Run& run) {
  return run.entry.renews_drafts();
}
bool fills_front(const Run& run) {
  return keeps_window(run) && run.entry.needs_drafter();
}
bool is_row_parallel(const Run& run) {
  return run.entry.is_row_parallel();
}
const OfficialVariant* variant_of(const Run& run) {
  return run.entry.variant(run.rule);
}

Value usual_init(const Run& run) {
  const OfficialVariant* variant = variant_of(run);
  return std::string(variant != nullptr ? variant->init : "repeat");
}

Narrow inits_of(const Run& run) {
  Narrow all;
  if (const OfficialVariant* variant = variant_of(run))
    all.push_back(choices({variant->init}, for_rule(run)));
  if (run.entry.is_row_parallel())
    all.push_back(choices({"uniform", "random", "repeat", "above"}, for_method(run)));
  return all;
}

// A short window that is drafted anew has as many tokens accepted as one that stays, for less work. Drafts
// that stay depend on those before them, while whole paths are verified by products of probabilities.
Value usual_tail(const Run& run) {
  return std::string(verifies_paths(run) || run.entry.needs_refiner() ? "fresh" : "keep");
}

Narrow tails_of(const Run& run) {
  Narrow all;
  if (*run.entry.only_tail != '\0') all.push_back(choices({run.entry.only_tail}, for_method(run)));
  if (verifies_paths(run)) all.push_back(choices({"fresh"}, for_rule(run)));
  if (const OfficialVariant* variant = variant_of(run))
    all.push_back(choices({variant->tail}, for_rule(run)));
  if (run.entry.needs_refiner() && run.options.children == "top")
    all.push_back(choices({"fresh"}, ": children top are not sampled"));
  return all;
}

std::int64_t heads_of(const Run& run) {
  return run.manifest->drafters.at(run.options.drafter).heads;
}

Value usual_front(const Run& run) {
  const std::int64_t heads = heads_of(run), depth = load_tree(run.options.tree).max_depth();
  return std::min<std::int64_t>({2, heads > 0 ? heads : 2, depth});
}

Narrow fronts_of(const Run& run) {
  Narrow all{whole(1, load_tree(run.options.tree).max_depth(),
                   ", the depth of the tree " + tree_name(run.options.tree))};
  if (const std::int64_t heads = heads_of(run))
    all.push_back(whole(1, heads, ", the heads of drafter " + run.options.drafter));
  return all;
}

}  // namespace

std::vector<MethodOption> window_options() {
  const double nodes = static_cast<double>(kMaxTreeNodes);
  return {
      row("init", "init", "Init", kMethod, "NAME",
          "Content of new positions of a window: uniform, random, repeat, sample or above (sjd)", &M::init,
          keeps_window, choices({std::begin(kWindowFills), std::end(kWindowFills)}), {"repeat", usual_init},
          inits_of),
      row("tail", "tail", "Tail", kMethod, "NAME",
          "keep: drafts may stay in the window for the next cycle; fresh: all are sampled anew (sjd, refine)",
          &M::tail, renews_drafts, choices({"keep", "fresh"}),
          {"keep, fresh for refine and for rules that verify paths", usual_tail}, tails_of),
      row("front", "front", "Front", kMethod, "N",
          "Positions of the window that the drafter fills (eagle+sjd, flash+sjd)", &M::front, fills_front,
          range(1, nodes - 1), {"2", usual_front}, fronts_of),
      row("ahead", "ahead", "Ahead", kMethod, "N",
          "Tokens by which an image row is ahead of the next one; with a whole row or more, rows are "
          "generated one after the other (zipar, zipar+sjd, pjd)",
          &M::ahead, is_row_parallel, range(1, 4096), unset("half of a row")),
      row("zipar", "zipar", "ZipAR", kMethod, "NAME",
          "clean, or official: missing tokens of the row above are seen as zeros, as in the official code "
          "(zipar)",
          &M::zipar, verifies_nothing, choices({"clean", "official"}), fixed("clean"))};
}

}  // namespace lamplighter
