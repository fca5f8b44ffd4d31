#include "draft/lookup/lookahead.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/full.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <string>
#include <vector>

#include "draft/lookup/ngram_pool.h"

namespace lamplighter {
namespace {

constexpr std::int64_t kColumns = 4;  // W of the window
constexpr std::int64_t kGuesses = 4;  // G of the pool

// Nodes of a tree with tails of N tokens: the root, the guesses, the window.
constexpr std::int64_t nodes_for(std::int64_t length) {
  return 1 + kGuesses * length + kColumns * length - 1;
}

at::Tensor integers(at::IntArrayRef shape, std::int64_t value, const c10::Device& device) {
  return at::full(shape, value, at::dtype(at::kLong).device(device));
}

// A tree of one image while it grows, a view of a draft's tensors.
struct Sprout {
  std::int64_t *tokens, *parents, *depths, *mask;
  std::int64_t size = 1;

  Sprout(Draft& draft, std::int64_t image, std::int64_t nodes)
      : tokens(draft.tokens.mutable_data_ptr<std::int64_t>() + image * nodes),
        parents(draft.nodes.parents.mutable_data_ptr<std::int64_t>() + image * nodes),
        depths(draft.nodes.depths.mutable_data_ptr<std::int64_t>() + image * nodes),
        mask(draft.nodes.mask.mutable_data_ptr<std::int64_t>() + image * nodes) {
    parents[0] = -1;
    depths[0] = 0;
    mask[0] = 1;
  }

  std::int64_t add(std::int64_t parent, std::int64_t token) {
    tokens[size] = token;
    parents[size] = parent;
    depths[size] = depths[parent] + 1;
    mask[size] =
        static_cast<std::int64_t>(static_cast<std::uint64_t>(mask[parent]) | std::uint64_t{1} << size);
    return size++;
  }

  // The child with the token; it is added if there is none.
  std::int64_t child(std::int64_t parent, std::int64_t token) {
    for (std::int64_t node = parent + 1; node < size; ++node) {
      if (parents[node] == parent && tokens[node] == token) return node;
    }
    return add(parent, token);
  }

  // Padding nodes.
  void fill_up(std::int64_t end) {
    while (size < end) add(0, -1);
  }
};

// N = tokens of a tail, W = columns, G = guesses.
class Lookahead : public DraftMethod {
 public:
  Lookahead(const Method& method, const Models& models)
      : length_(method.tail),
        nodes_(nodes_for(length_)),
        codes_(models.target->manifest().tokens.codebook_size),
        device_(models.target->placement().device) {}

  // The window's deepest node is its last column's.
  TreeShape shape() const override { return {nodes_, length_ + kColumns - 2, nodes_ - 1}; }
  bool replayable() const override { return false; }

  void allocate(const RunShape& shape, std::int64_t /*rows*/) override {
    window_ = integers({shape.images, length_, kColumns}, 0, device_);
    pool_ = integers({shape.images, codes_, kGuesses, length_}, -1, device_);
    pooled_ = integers({shape.images}, 0, device_);
  }

  Draft draft(const RunState& run) override {
    const at::Tensor codes = run.counters.codes.cpu(), steps = run.counters.steps.cpu(),
                     root = run.counters.root.cpu();
    at::Tensor window = window_.cpu(), pool = pool_.cpu(), pooled = pooled_.cpu();
    const std::int64_t images = run.images();
    Draft draft;
    draft.tokens = integers({images, nodes_}, -1, c10::kCPU);
    draft.nodes.parents = integers({images, nodes_}, 0, c10::kCPU);
    draft.nodes.depths = integers({images, nodes_}, 0, c10::kCPU);
    draft.nodes.mask = integers({images, nodes_, 1}, 0, c10::kCPU);
    for (std::int64_t image = 0; image < images; ++image) {
      NgramPool runs = pool_of(pool, image);
      const std::int64_t count = steps.const_data_ptr<std::int64_t>()[image];
      std::int64_t& known = pooled.mutable_data_ptr<std::int64_t>()[image];
      runs.add_runs(codes.const_data_ptr<std::int64_t>() + image * codes.size(1), known, count);
      known = count;
      Sprout tree(draft, image, nodes_);
      tree.tokens[0] = root.const_data_ptr<std::int64_t>()[image];
      grow(tree, runs, window_of(window, image));
    }
    if (!device_.is_cpu()) keep(window, pool, pooled);
    for (at::Tensor* each : {&draft.tokens, &draft.nodes.parents, &draft.nodes.depths, &draft.nodes.mask})
      *each = each->to(device_);
    draft.nodes.draft_rows = integers({1, nodes_}, -1, device_);
    return draft;
  }

  void update(const Draft& draft, const Scores& /*scores*/, const Verified& verified,
              const RunState& run) override {
    if (draft.tokens.size(1) == 1) return begin_window(run);
    const at::Tensor index = last_level().unsqueeze(0).expand({run.images(), -1}).to(device_);
    // A position behind the end of an image row was not scored and keeps its guess.
    const at::Tensor scored = draft.tokens.gather(1, index) >= 0;
    const at::Tensor next = at::where(scored, ops::probabilities(rows_at(verified.target, index)).argmax(2),
                                      window_.select(1, length_ - 1))
                                .cpu();
    at::Tensor window = window_.cpu(), pool = pool_.cpu();
    const at::Tensor root = run.counters.root.cpu();
    for (std::int64_t image = 0; image < run.images(); ++image) {
      NgramPool runs = pool_of(pool, image);
      window_of(window, image)
          .update(root.const_data_ptr<std::int64_t>()[image],
                  next.const_data_ptr<std::int64_t>() + image * kColumns, runs);
    }
    if (!device_.is_cpu()) keep(window, pool, pooled_);
  }

  std::vector<PerImage> per_image() override { return {{&window_}, {&pool_}, {&pooled_}}; }

 private:
  NgramPool pool_of(at::Tensor& pool, std::int64_t image) const {
    return {pool.mutable_data_ptr<std::int64_t>() + image * codes_ * kGuesses * length_, codes_, kGuesses,
            length_};
  }

  NgramWindow window_of(at::Tensor& window, std::int64_t image) const {
    return {window.mutable_data_ptr<std::int64_t>() + image * length_ * kColumns, length_, kColumns};
  }

  void keep(const at::Tensor& window, const at::Tensor& pool, const at::Tensor& pooled) {
    window_.copy_(window);
    pool_.copy_(pool);
    pooled_.copy_(pooled);
  }

  // Random guesses; the pool forgets the image before.
  void begin_window(const RunState& run) {
    const at::Tensor uniforms =
        ops::uniforms(run.seeds, run.counters.steps, ops::Purpose::fill, length_ * kColumns);
    window_.copy_((uniforms * codes_).to(at::kLong).clamp_max(codes_ - 1).view_as(window_));
    pool_.fill_(-1);
    pooled_.zero_();
  }

  // The guesses begin at node 1, the window behind the most nodes that they can take.
  void grow(Sprout& tree, const NgramPool& runs, const NgramWindow& window) const {
    for (const std::vector<std::int64_t>& tail : runs.of(tree.tokens[0])) {
      std::int64_t node = 0;
      for (const std::int64_t token : tail) node = tree.child(node, token);
    }
    tree.fill_up(1 + kGuesses * length_);
    std::vector<std::int64_t> column{0};
    for (std::int64_t i = 0; i + 1 < kColumns; ++i)
      column.push_back(tree.add(column.back(), window.at(0, i)));
    for (std::int64_t level = 1; level < length_; ++level) {
      for (std::int64_t i = 0; i < kColumns; ++i)
        column[static_cast<std::size_t>(i)] =
            tree.add(column[static_cast<std::size_t>(i)], window.at(level, i));
    }
  }

  // int64 [W]: the nodes behind which the window's next level stands.
  at::Tensor last_level() const {
    at::Tensor nodes = at::zeros({kColumns}, at::kLong);
    auto* node = nodes.mutable_data_ptr<std::int64_t>();
    for (std::int64_t i = 0; i < kColumns; ++i)
      node[i] = length_ == 1 && i == 0 ? 0 : nodes_ - kColumns + i;  // level 0 has the root in front
    return nodes;
  }

  std::int64_t length_, nodes_, codes_;
  c10::Device device_;
  at::Tensor window_;  // int64 [I, N, W]
  at::Tensor pool_;    // int64 [I, codes, G, N]
  at::Tensor pooled_;  // int64 [I], codes of the image that are in the pool
};

}  // namespace

std::unique_ptr<DraftMethod> make_lookahead(const Method& method, const Models& models) {
  return std::make_unique<Lookahead>(method, models);
}

std::int64_t longest_lookahead() {
  std::int64_t length = 1;
  while (nodes_for(length + 1) <= kMaxTreeNodes) ++length;
  return length;
}

}  // namespace lamplighter
