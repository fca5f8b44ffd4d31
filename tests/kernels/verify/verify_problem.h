#pragma once

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "kernels/ops.h"
#include "tests/kernels/common/operators.h"
#include "tests/kernels/verify/numbers_of.h"
#include "tests/reference/verify.h"

// Random cycles for verify_tree, and the same on the host.
namespace lamplighter::test {

struct VerifyShape {
  int64_t images = 1;
  int64_t nodes = 1;
  int64_t vocabulary = 8;
  int64_t codes = 8;
  int64_t first_image_id = 0;
  int64_t neighbours = 0;
  bool chain = false;
  bool sampled = true;
  double bad_rows = 0;  // chance of a row of zeros
  double padding = 0;   // chance of a token that is none
};

// A multiple of 2^-24 in [0, 1).
inline float grid_uniform(std::mt19937& rng) {
  return static_cast<float>(rng() >> 8) * 0x1p-24F;
}

class VerifyProblem {
 public:
  VerifyProblem(std::mt19937& rng, const VerifyShape& shape) : shape_(shape), rng_(rng) {
    make_tree();
    make_rows();
    sample_tokens();
    tree.uniforms = at::empty({shape.images, shape.nodes + 1}, at::kFloat);
    fill(tree.uniforms, [&] { return grid_uniform(rng_); });
    tree.temperature = at::full({shape.images}, 1.0, at::kFloat);
    if (shape.neighbours > 0) make_neighbours();
  }

  // One image for the host.
  reference::ScoredTree host(int64_t image) const;

  ops::ScoredTree tree;
  at::Tensor neighbours;  // int32, undefined without any
  NeighbourTable table;

 private:
  template <class Value>
  static void fill(at::Tensor& tensor, Value value) {
    float* p = tensor.mutable_data_ptr<float>();
    for (int64_t i = 0; i < tensor.numel(); ++i) p[i] = value();
  }

  void make_tree();
  void make_rows();
  void sample_tokens();
  void make_neighbours();
  void soft_max(float* row, const std::vector<double>& logits);

  VerifyShape shape_;
  std::mt19937& rng_;
};

// The same on another device; rows are probabilities.
inline ops::ScoredTree on_device(const ops::ScoredTree& tree, const c10::Device& device) {
  ops::ScoredTree moved = tree;
  for (at::Tensor* tensor :
       {&moved.tokens, &moved.parents, &moved.draft_rows, &moved.uniforms, &moved.temperature})
    *tensor = tensor->to(device);
  for (ops::Distributions* rows : {&moved.target, &moved.draft}) *rows = rows->values.to(device);
  return moved;
}

inline void VerifyProblem::make_tree() {
  std::vector<int64_t> depth(static_cast<size_t>(shape_.nodes));
  std::vector<int64_t> parents{-1};
  const int64_t spread = pick(rng_, 1, shape_.nodes);
  for (int64_t node = 1; node < shape_.nodes; ++node) {
    parents.push_back(shape_.chain ? node - 1 : pick(rng_, std::max<int64_t>(0, node - spread), node - 1));
    depth[static_cast<size_t>(node)] = depth[static_cast<size_t>(parents.back())] + 1;
  }
  tree.depth = *std::max_element(depth.begin(), depth.end());
  tree.parents = integers({1, shape_.nodes}, [&](int64_t i) { return parents[static_cast<size_t>(i)]; });
  int64_t rows = 0;
  tree.draft_rows = integers({1, shape_.nodes}, [&](int64_t i) {
    return std::find(parents.begin(), parents.end(), i) == parents.end() ? -1 : rows++;
  });
  tree.draft = at::empty({shape_.images, rows, shape_.vocabulary}, at::kFloat);
  tree.target = at::empty({shape_.images, shape_.nodes, shape_.vocabulary}, at::kFloat);
}

// Some rows lack the lower half of their tokens.
inline void VerifyProblem::soft_max(float* row, const std::vector<double>& logits) {
  std::vector<double> sorted = logits;
  std::sort(sorted.begin(), sorted.end());
  const double floor = pick(rng_, 0, 2) == 0 ? sorted[sorted.size() / 2] : sorted[0];
  double total = 0;
  for (const double z : logits) total += z < floor ? 0 : std::exp(z - sorted.back());
  const bool bad = std::bernoulli_distribution(shape_.bad_rows)(rng_);
  for (size_t i = 0; i < logits.size(); ++i) {
    row[i] = bad || logits[i] < floor ? 0 : static_cast<float>(std::exp(logits[i] - sorted.back()) / total);
  }
}

inline void VerifyProblem::make_rows() {
  std::normal_distribution<double> normal(0, 1);
  std::vector<double> logits(static_cast<size_t>(shape_.vocabulary));
  const int64_t* draft_rows = tree.draft_rows.const_data_ptr<int64_t>();
  float* target = tree.target.values.mutable_data_ptr<float>();
  float* draft = tree.draft.values.mutable_data_ptr<float>();
  for (int64_t row = 0; row < shape_.images * shape_.nodes; ++row) {
    for (double& z : logits) z = 2 * normal(rng_);
    soft_max(target + row * shape_.vocabulary, logits);
    const int64_t drafted = draft_rows[row % shape_.nodes];
    if (drafted < 0) continue;
    for (double& z : logits) z += normal(rng_);
    soft_max(draft + (row / shape_.nodes * tree.draft.values.size(1) + drafted) * shape_.vocabulary, logits);
  }
}

inline void VerifyProblem::sample_tokens() {
  const int64_t* parents = tree.parents.const_data_ptr<int64_t>();
  const int64_t* draft_rows = tree.draft_rows.const_data_ptr<int64_t>();
  const float* draft = tree.draft.values.const_data_ptr<float>();
  tree.tokens = integers({shape_.images, shape_.nodes}, [](int64_t) { return -1; });
  int64_t* tokens = tree.tokens.mutable_data_ptr<int64_t>();
  for (int64_t image = 0; image < shape_.images; ++image, tokens += shape_.nodes) {
    for (int64_t node = 1; node < shape_.nodes; ++node) {
      const float* row =
          draft + (image * tree.draft.values.size(1) + draft_rows[parents[node]]) * shape_.vocabulary;
      std::vector<double> left(row, row + shape_.vocabulary);
      for (int64_t other = 1; other < node; ++other) {
        if (parents[other] == parents[node] && tokens[other] >= 0 && tokens[other] < shape_.vocabulary) {
          left[static_cast<size_t>(tokens[other])] = 0;
        }
      }
      if (std::bernoulli_distribution(shape_.padding)(rng_)) {
        tokens[node] = pick(rng_, 0, 1) == 0 ? -1 : pick(rng_, 0, shape_.vocabulary + 1);
      } else if (*std::max_element(left.begin(), left.end()) > 0) {
        tokens[node] = shape_.sampled ? std::discrete_distribution<int64_t>(left.begin(), left.end())(rng_)
                                      : std::max_element(left.begin(), left.end()) - left.begin();
      }
    }
  }
}

inline void VerifyProblem::make_neighbours() {
  table.codes = shape_.codes;
  table.width = std::min(shape_.neighbours, shape_.codes - 1);
  std::vector<uint16_t> others;
  for (int64_t code = 0; code < shape_.codes; ++code) {
    others.clear();
    for (int64_t other = 0; other < shape_.codes; ++other) {
      if (other != code) others.push_back(static_cast<uint16_t>(other));
    }
    std::shuffle(others.begin(), others.end(), rng_);
    table.ids.insert(table.ids.end(), others.begin(), others.begin() + table.width);
  }
  neighbours = integers({table.codes, table.width}, [&](int64_t i) {
                 return int64_t{table.ids[static_cast<size_t>(i)]};
               }).to(at::kInt);
}

inline reference::ScoredTree VerifyProblem::host(int64_t image) const {
  const auto ids = [&](const at::Tensor& tensor) {
    const int64_t row = tensor.size(0) == 1 ? 0 : image;
    const int64_t* p = tensor.const_data_ptr<int64_t>() + row * tensor.size(1);
    return std::vector<int64_t>(p, p + tensor.size(1));
  };
  const auto rows = [&](const at::Tensor& tensor) {
    std::vector<reference::Distribution> result;
    const float* p = tensor.const_data_ptr<float>() + image * tensor.size(1) * tensor.size(2);
    for (int64_t row = 0; row < tensor.size(1); ++row, p += tensor.size(2)) {
      result.emplace_back(p, p + tensor.size(2));
    }
    return result;
  };
  const float* uniforms = tree.uniforms.const_data_ptr<float>() + image * tree.uniforms.size(1);
  return {ids(tree.tokens),         ids(tree.parents),       ids(tree.draft_rows),
          rows(tree.target.values), rows(tree.draft.values), {uniforms, uniforms + tree.uniforms.size(1)}};
}

}  // namespace lamplighter::test
