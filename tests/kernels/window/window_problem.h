#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>

#include "tests/kernels/verify/verify_problem.h"

// Random windows of speculative Jacobi decoding.
namespace lamplighter::test {

struct WindowProblem {
  ops::ScoredTree tree;  // a chain
  at::Tensor count;      // int64 [I], positions behind the root that were accepted
};

inline WindowProblem window_problem(std::mt19937& rng, int64_t images, int64_t nodes, int64_t vocabulary,
                                    double bad_rows = 0, double padding = 0) {
  VerifyShape shape;
  shape.images = images;
  shape.nodes = nodes;
  shape.vocabulary = shape.codes = vocabulary;
  shape.chain = true;
  shape.bad_rows = bad_rows;
  shape.padding = padding;
  WindowProblem problem{VerifyProblem(rng, shape).tree, {}};
  problem.tree.uniforms = at::empty({images, 2 * nodes}, at::kFloat);
  float* uniforms = problem.tree.uniforms.mutable_data_ptr<float>();
  for (int64_t i = 0; i < problem.tree.uniforms.numel(); ++i) uniforms[i] = grid_uniform(rng);
  problem.tree.depth = nodes - 1;
  problem.count = integers({images}, [&](int64_t) { return pick(rng, 0, nodes - 1); });
  return problem;
}

struct FanProblem {
  ops::ScoredTree tree;
  at::Tensor nodes;    // int64 [I, L]
  at::Tensor samples;  // fp32 [I, L, K]
};

inline FanProblem fan_problem(std::mt19937& rng, const VerifyShape& shape, int64_t slots, int64_t count) {
  FanProblem problem{VerifyProblem(rng, shape).tree, {}, at::empty({shape.images, slots, count}, at::kFloat)};
  problem.nodes = integers({shape.images, slots}, [&](int64_t) { return pick(rng, -1, shape.nodes - 1); });
  float* samples = problem.samples.mutable_data_ptr<float>();
  for (int64_t i = 0; i < problem.samples.numel(); ++i) samples[i] = grid_uniform(rng);
  return problem;
}

}  // namespace lamplighter::test
