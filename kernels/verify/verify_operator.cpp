#include <ATen/ops/empty.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "kernels/common/on_cuda.h"
#include "kernels/common/operator.h"
#include "kernels/common/parallel.h"
#include "kernels/common/scratch.h"
#include "kernels/sampling/distribution_checks.h"
#include "kernels/verify/rule_numbers.h"
#include "kernels/verify/verify.h"
#include "kernels/verify/verify_args.h"

namespace lamplighter {
namespace {

int64_t verify_choice(const char* name, int64_t value, int64_t last) {
  TORCH_CHECK(value >= 0 && value <= last, "verify_tree: ", name, " is ", value, ", expected 0..", last);
  return value;
}

Rule verify_rule(int64_t value) {
  return static_cast<Rule>(verify_choice("rule", value, static_cast<int64_t>(std::size(kRules)) - 1));
}

Residual verify_residual(int64_t value) {
  constexpr auto kLast = static_cast<int64_t>(Residual::official_lumina_dynamic);
  return static_cast<Residual>(verify_choice("residual", value, kLast));
}

void set_verify_tensors(VerifyArgs& args, const ops::ScoredTree& t) {
  constexpr const char* kOp = "verify_tree";
  const at::Device device = t.target.values.device();
  const CheckedRows target = distribution_rows(kOp, "target", t.target);
  const int64_t images = target.images;
  const int64_t nodes = target.rows.rows;
  TORCH_CHECK(nodes >= 1 && nodes <= kVerifyNodes, kOp, ": target has shape ", t.target.values.sizes(),
              " with ", nodes, " nodes, expected 1..", kVerifyNodes);
  if (t.draft.defined()) {
    check_device(kOp, "draft", t.draft.values, device);
    const CheckedRows draft = distribution_rows(kOp, "draft", t.draft);
    TORCH_CHECK(draft.images == images && draft.rows.vocabulary == target.rows.vocabulary, kOp,
                ": draft has shape ", t.draft.values.sizes(), ", expected ", images, " images and ",
                target.rows.vocabulary, " tokens");
    args.draft = draft.rows;
  }
  check_tensor(kOp, "tokens", t.tokens, at::kLong, device);
  check_shape(kOp, "tokens", t.tokens, {images, nodes});
  check_tensor(kOp, "parents", t.parents, at::kLong, device);
  check_shape(kOp, "parents", t.parents,
              {t.parents.dim() == 2 && t.parents.size(0) == 1 ? 1 : images, nodes});
  check_tensor(kOp, "draft_rows", t.draft_rows, at::kLong, device);
  check_shape(kOp, "draft_rows", t.draft_rows,
              {t.draft_rows.dim() == 2 && t.draft_rows.size(0) == 1 ? 1 : images, nodes});
  check_tensor(kOp, "uniforms", t.uniforms, at::kFloat, device);
  check_shape(kOp, "uniforms", t.uniforms, {images, kAny});
  TORCH_CHECK(t.uniforms.size(1) >= nodes, kOp, ": uniforms have shape ", t.uniforms.sizes(),
              ", expected at least ", nodes, " an image, one for each node");
  check_tensor(kOp, "temperature", t.temperature, at::kFloat, device);
  check_shape(kOp, "temperature", t.temperature, {images});
  args.target = target.rows;
  args.images = images;
  args.nodes = nodes;
  args.vocabulary = target.rows.vocabulary;
  args.uniform_count = t.uniforms.size(1);
  args.parents_stride = t.parents.size(0) == images ? nodes : 0;
  args.draft_rows_stride = t.draft_rows.size(0) == images ? nodes : 0;
  args.tokens = t.tokens.const_data_ptr<int64_t>();
  args.parents = t.parents.const_data_ptr<int64_t>();
  args.draft_rows = t.draft_rows.const_data_ptr<int64_t>();
  args.uniforms = t.uniforms.const_data_ptr<float>();
  args.temperature = t.temperature.const_data_ptr<float>();
}

// int32 [codes, K]; empty or undefined: none.
void set_verify_neighbours(VerifyArgs& args, const at::Tensor& neighbours, at::Device device) {
  if (!neighbours.defined()) return;
  check_tensor("verify_tree", "neighbours", neighbours, at::kInt, device);
  if (neighbours.numel() == 0) return;
  check_shape("verify_tree", "neighbours", neighbours, {kAny, kAny});
  args.codes = neighbours.size(0);
  args.neighbour_count = neighbours.size(1);
  args.neighbours = neighbours.const_data_ptr<int32_t>();
}

// fp32 [codes, width], or undefined.
void set_verify_codebook(VerifyArgs& args, const at::Tensor& codebook, at::Device device) {
  if (!codebook.defined()) return;
  check_tensor("verify_tree", "codebook", codebook, at::kFloat, device);
  check_shape("verify_tree", "codebook", codebook, {kAny, kAny});
  args.codebook = codebook.const_data_ptr<float>();
  args.code_rows = codebook.size(0);
  args.code_width = codebook.size(1);
}

// int64 [any count], or undefined.
void set_verify_syntax(VerifyArgs& args, const at::Tensor& syntax_ids, at::Device device) {
  if (!syntax_ids.defined()) return;
  check_tensor("verify_tree", "syntax_ids", syntax_ids, at::kLong, device);
  check_shape("verify_tree", "syntax_ids", syntax_ids, {kAny});
  args.syntax_ids = syntax_ids.const_data_ptr<int64_t>();
  args.syntax_count = syntax_ids.size(0);
}

}  // namespace

VerifyArgs verify_args(const ops::ScoredTree& tree, const ops::VerifyOptions& options) {
  constexpr const char* kOp = "verify_tree";
  const at::Device device = tree.target.values.device();
  VerifyArgs args{};
  set_verify_tensors(args, tree);
  args.rule = verify_rule(static_cast<int64_t>(options.rule));
  args.residual = verify_residual(static_cast<int64_t>(options.residual));
  args.sampled = options.sampled;
  const RuleTraits& traits = traits_of(args.rule);
  args.walk = traits.walk;
  args.numbers = options.numbers;
  TORCH_CHECK(traits.official_residuals() || !is_official(args.residual), kOp, ": rule ", traits.name,
              " came with residual ", static_cast<int64_t>(args.residual), ", expected 0 or 1");
  TORCH_CHECK(tree.depth >= 0 && tree.depth < kVerifyNodes, kOp, ": depth is ", tree.depth, ", expected 0..",
              kVerifyNodes - 1);
  args.depth = tree.depth;
  args.levels = args.walk == Walk::paths ? args.depth + 1 : 1;
  set_verify_neighbours(args, options.neighbours, device);
  set_verify_syntax(args, options.syntax_ids, device);
  set_verify_codebook(args, options.codebook, device);
  TORCH_CHECK(options.k >= 0, kOp, ": k is ", options.k, ", expected 0 or more neighbours");
  args.k = std::min(options.k, args.neighbour_count);
  args.first_image_id = options.first_image_id;
  TORCH_CHECK(args.first_image_id >= 0 && args.first_image_id <= args.vocabulary - args.codes, kOp,
              ": first_image_id is ", args.first_image_id, ", expected 0..", args.vocabulary - args.codes,
              " for ", args.codes, " codes among ", args.vocabulary, " ids");
  return args;
}

ops::Verified verify_results(VerifyArgs& args, const ops::ScoredTree& tree) {
  const at::TensorOptions integers = tree.tokens.options();
  ops::Verified results = {at::empty({args.images, args.depth + 1}, integers),
                           at::empty({args.images}, integers), at::empty({args.images}, integers),
                           at::empty({args.images, args.vocabulary}, tree.uniforms.options()),
                           at::empty({args.images}, integers)};
  args.path = results.path.mutable_data_ptr<int64_t>();
  args.count = results.count.mutable_data_ptr<int64_t>();
  args.token = results.token.mutable_data_ptr<int64_t>();
  args.final = results.final.mutable_data_ptr<float>();
  args.status = results.status.mutable_data_ptr<int64_t>();
  return results;
}

namespace {

void run_cpu(const VerifyArgs& args) {
  const auto kernel = for_isa([](auto isa) { return &verify_cpu<isa.value>; });
  const size_t bytes = verify_scratch_floats(args) * sizeof(float);
  parallel_for(0, args.images, 1, [&](int64_t begin, int64_t end) {
    kernel(args, begin, end, static_cast<float*>(thread_scratch(bytes)));
  });
}

ops::Verified verified_shapes(const ops::ScoredTree& tree) {
  constexpr const char* kOp = "verify_tree";
  const c10::SymInt images = check_distributions(kOp, "target", tree.target);
  if (tree.draft.defined()) check_distributions(kOp, "draft", tree.draft);
  check_dtype(kOp, "tokens", tree.tokens, at::kLong);
  check_dtype(kOp, "parents", tree.parents, at::kLong);
  check_dtype(kOp, "draft_rows", tree.draft_rows, at::kLong);
  check_dtype(kOp, "uniforms", tree.uniforms, at::kFloat);
  check_dtype(kOp, "temperature", tree.temperature, at::kFloat);
  return {like(tree.tokens, {images, tree.depth + 1}), like(tree.tokens, {images}),
          like(tree.tokens, {images}), like(tree.uniforms, {images, tree.target.values.sym_size(2)}),
          like(tree.tokens, {images})};
}

}  // namespace

ops::Verified ops::verify_tree(const ScoredTree& tree, const VerifyOptions& options) {
  return on_device("lamplighter::verify_tree", tree.tokens, [&](auto on) {
    if constexpr (on == On::meta) {
      return verified_shapes(tree);
    } else {
      VerifyArgs args = verify_args(tree, options);
      Verified results = verify_results(args, tree);
      if constexpr (on == On::cuda) {
        on_cuda(tree.tokens, [&](void* stream) {
          const CudaScratch scratch(tree.tokens, 1, verify_cuda_bytes(args));
          verify_cuda(args, scratch.get(), stream);
        });
      } else {
        run_cpu(args);
      }
      return results;
    }
  });
}

TORCH_LIBRARY_FRAGMENT(lamplighter, m) {
  using OptionalTensor = std::optional<at::Tensor>;
  // rule, residual: numbers of the enumerations of acceptance/rules.h.
  define_adaptor(
      m,
      "verify_tree(Tensor target, Tensor draft, Tensor tokens, Tensor parents, Tensor draft_rows, "
      "Tensor uniforms, Tensor temperature, Tensor neighbours, int rule, int residual, bool sampled, int k, "
      "Tensor bounds, int first_image_id, int depth, Tensor? syntax_ids=None, "
      "Tensor? target_statistics=None, Tensor? draft_statistics=None, Tensor? codebook=None) "
      "-> (Tensor path, Tensor count, Tensor token, Tensor final, Tensor status)",
      [](const at::Tensor& target, const at::Tensor& draft, const at::Tensor& tokens,
         const at::Tensor& parents, const at::Tensor& draft_rows, const at::Tensor& uniforms,
         const at::Tensor& temperature, const at::Tensor& neighbours, int64_t rule, int64_t residual,
         bool sampled, int64_t k, const at::Tensor& bounds, int64_t first_image_id, int64_t depth,
         const OptionalTensor& syntax_ids, const OptionalTensor& target_statistics,
         const OptionalTensor& draft_statistics, const OptionalTensor& codebook) {
        auto [path, count, token, final, status] = ops::verify_tree(
            {distributions(target, target_statistics), distributions(draft, draft_statistics), tokens,
             parents, draft_rows, uniforms, temperature, depth},
            {verify_rule(rule), verify_residual(residual), sampled, neighbours,
             numbers_from(verify_rule(rule), bounds), k, first_image_id, syntax_ids.value_or(at::Tensor()),
             codebook.value_or(at::Tensor())});
        return std::tuple(path, count, token, final, status);
      });
}

}  // namespace lamplighter
