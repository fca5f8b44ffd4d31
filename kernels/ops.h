#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <tuple>

// The operators of this library that the engine itself calls; shapes and meanings stand beside the kernels.
// I = images, S = sequences (I, or 2 I as interleaved conditional/unconditional pairs), R = rows, V =
// vocabulary.
namespace lamplighter::ops {

// What a random number is for; part of the counter, so that draws for different purposes never coincide.
enum class Purpose : std::int64_t { token = 0, accept = 1, children = 2 };

// seeds, steps int64 [I] -> fp32 [I, count] in [0, 1), multiples of 2^-24.
at::Tensor uniforms(const at::Tensor& seeds, const at::Tensor& steps, Purpose purpose, std::int64_t count);

// logits [S, R, V]; guidance, temperature, top_p fp32 [I]; top_k int64 [I] -> probabilities fp32 [I, R, V].
at::Tensor guide_and_filter(const at::Tensor& logits, const at::Tensor& guidance,
                            const at::Tensor& temperature, const at::Tensor& top_k, const at::Tensor& top_p,
                            const std::string& order);

// probabilities fp32 [I, R, V], uniforms fp32 [I, R], temperature fp32 [I] -> tokens int64 [I, R].
at::Tensor draw(const at::Tensor& probabilities, const at::Tensor& uniforms, const at::Tensor& temperature);

// probabilities fp32 [I, W, V], seeds and steps int64 [I], nodes int64 [W] -> tokens int64 [I, W, count] in
// the order drawn, -1 when no mass is left, and their conditional probabilities fp32 [I, W, count].
std::tuple<at::Tensor, at::Tensor> draw_children(const at::Tensor& probabilities, const at::Tensor& seeds,
                                                 const at::Tensor& steps, const at::Tensor& nodes,
                                                 std::int64_t count, bool sampled);

// cache [layers, 2, S, kv_heads, slots, head_dim], lengths int64 [S], path int64 [I, A], count int64 [I]:
// moves cache rows lengths[s] + path[i][j] -> lengths[s] + j for j = 1..count[i], in place.
void compact_cache(at::Tensor& cache, const at::Tensor& lengths, const at::Tensor& path,
                   const at::Tensor& count);

// Names of operators that TorchScript archives call and that this process lacks; empty when all are there.
std::string missing_operators();

}  // namespace lamplighter::ops
