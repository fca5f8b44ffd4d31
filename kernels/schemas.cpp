#include <torch/library.h>

#include "kernels/anchor.h"

// Shapes and meanings: kernels/<operator>.h.
TORCH_LIBRARY(lamplighter, m) {
  m.def("rms_norm(Tensor x, Tensor weight, float eps) -> Tensor");
  m.def("add_rms_norm(Tensor(a!) residual, Tensor x, Tensor weight, float eps) -> Tensor");
  m.def("silu_mul(Tensor gate_up) -> Tensor");
  m.def("norm_heads(Tensor(a!) values, Tensor weight, Tensor bias, float eps) -> ()");
  m.def("pack_linear(Tensor weight) -> Tensor");
  m.def("pack_linear_int8(Tensor weight) -> Tensor");
  m.def("linear(Tensor x, Tensor weight, int out_features) -> Tensor");
  m.def(
      "attend(Tensor qkv, Tensor(a!) cache, int layer, Tensor positions, Tensor lengths, Tensor tree_mask, "
      "Tensor rotary, int heads, int kv_heads, float scale) -> Tensor");
  m.def("compact_cache(Tensor(a!) cache, Tensor lengths, Tensor path, Tensor count) -> ()");
  m.def(
      "tree_rows(Tensor codes, Tensor depths, Tensor position, int first_id, int last_position) "
      "-> (Tensor ids, Tensor positions)");
  m.def(
      "commit_tokens(Tensor tokens, Tensor depths, Tensor path, Tensor count, Tensor token, "
      "Tensor kept_rows, Tensor kept_count, Tensor image, Tensor(a!) steps, Tensor(b!) codes, "
      "Tensor(c!) root, Tensor(d!) bad, Tensor(e!) lengths, Tensor(f!) position, Tensor(g!) report, "
      "Tensor(h!) fresh, Tensor(i!) fresh_ids, Tensor(j!) fresh_positions, int total, int last_position, "
      "int first_image_id, int row_end) -> Tensor");
  m.def("uniforms(Tensor seeds, Tensor steps, int purpose, int count) -> Tensor");
  m.def(
      "guide_and_filter(Tensor logits, Tensor guidance, Tensor temperature, Tensor top_k, Tensor top_p, "
      "str order) -> Tensor statistics");
  // Below, `values` are logits where statistics are given, else probabilities.
  m.def("probabilities(Tensor logits, Tensor statistics) -> Tensor");
  m.def("draw(Tensor values, Tensor uniforms, Tensor temperature, Tensor? statistics=None) -> Tensor");
  m.def(
      "draw_children(Tensor values, Tensor seeds, Tensor steps, Tensor nodes, int count, bool sampled, "
      "Tensor? statistics=None) -> (Tensor tokens, Tensor conditional)");
  m.def(
      "draft_children(Tensor logits, Tensor guidance, Tensor temperature, Tensor top_k, Tensor top_p, "
      "str order, Tensor seeds, Tensor steps, Tensor nodes, int count, bool sampled) "
      "-> (Tensor statistics, Tensor tokens, Tensor conditional)");
  m.def(
      "expand_dynamic(Tensor values, Tensor scores, int k, Tensor? statistics=None) -> (Tensor tokens, "
      "Tensor pool_scores, Tensor frontier)");
  m.def(
      "rerank_dynamic(Tensor tokens, Tensor scores, Tensor frontiers, int nodes) -> (Tensor tree_tokens, "
      "Tensor parents, Tensor depths, Tensor mask, Tensor pool_index)");
  m.def(
      "verify_tree(Tensor target, Tensor draft, Tensor tokens, Tensor parents, Tensor draft_rows, "
      "Tensor uniforms, Tensor temperature, Tensor neighbours, str rule, str residual, bool sampled, int k, "
      "Tensor bounds, int first_image_id, int depth, Tensor? syntax_ids=None, "
      "Tensor? target_statistics=None, Tensor? draft_statistics=None) "
      "-> (Tensor path, Tensor count, Tensor token, Tensor final, Tensor status)");
}

extern "C" int lamplighter_ops_anchor() {
  return 1;
}
