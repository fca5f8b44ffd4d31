#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/files.h"
#include "base/json.h"
#include "base/safetensors.h"
#include "kernels/ops.h"
#include "tests/kernels/common/operators.h"
#include "tests/kernels/trees/dynamic_trees.h"

namespace lamplighter::test {
namespace {

// A tensor of a golden file; integers as int64.
at::Tensor golden(const Safetensors& tensors, const std::string& name) {
  const TensorView& view = tensors.at(name);
  const at::ScalarType dtype = view.dtype == "F64"   ? at::kDouble
                               : view.dtype == "F32" ? at::kFloat
                               : view.dtype == "U8"  ? at::kByte
                                                     : at::kInt;
  at::Tensor tensor = at::empty(view.shape, dtype);
  std::copy(view.bytes.begin(), view.bytes.end(), static_cast<char*>(tensor.mutable_data_ptr()));
  return tensor.is_floating_point() ? tensor : tensor.to(at::kLong);
}

// Trees of the official code of EAGLE-2 style draft models, and cases with ties under our own rule.
TEST(DynamicGolden, PublishedTreesComeOut) {
  const std::string folder = LAMPLIGHTER_SOURCE_DIR "/tests/golden/cases/acceptance/dynamic_trees/";
  const Json cases = parse_json(read_file(folder + "case.json", ExitCode::input), folder, ExitCode::input);
  const Safetensors tensors = Safetensors::read(folder + "io.safetensors", ExitCode::input);
  int64_t count = 0;
  for (const Json& one : cases.at("cases")) {
    const auto id = one.at("id").get<std::string>();
    SCOPED_TRACE(id);
    const auto tensor = [&](const std::string& name) { return golden(tensors, id + "." + name); };
    const at::Tensor logits = tensor("row_logits"), paths = tensor("row_path");
    const auto filter = [&](const std::string& key, at::ScalarType dtype) {
      return at::full({1}, one.at(key).get<double>(), dtype);
    };
    const at::Tensor on = at::full({1}, 1.0F);
    const at::Tensor rows = ops::probabilities(ops::guide_and_filter(
        logits.unsqueeze(0),
        {on, filter("temperature", at::kFloat), filter("draft_top_k", at::kLong), on, "eagle"}))[0];
    std::map<Path, int64_t> row_of;
    for (int64_t row = 0; row < paths.size(0); ++row) {
      Path path = values(paths[row]);
      path.erase(std::find(path.begin(), path.end(), -1), path.end());
      row_of[path] = row;
    }
    const DraftModel drafter = [&](int64_t, const Path& path) { return rows[row_of.at(path)]; };
    const Pool pool = grow(drafter, 1, one.at("K").get<int64_t>(), one.at("depth").get<int64_t>());
    const Reranked got = reranked(pool, one.at("n_draft").get<int64_t>());
    const int64_t kept = tensor("pool_index").size(0);
    const auto head = [&](const at::Tensor& t, int64_t size) { return values(t[0].slice(0, 0, size)); };
    EXPECT_EQ(head(got.pool_index, kept), values(tensor("pool_index")));
    Path tokens = head(got.tokens, kept + 1);
    tokens[0] = one.at("root_token").get<int64_t>();
    EXPECT_EQ(tokens, values(tensor("tokens")));
    EXPECT_EQ(head(got.parents, kept + 1), values(tensor("parent")));
    EXPECT_EQ(head(got.depths, kept + 1), values(tensor("depth")));
    const at::Tensor bits = at::ones({kept + 1}, at::kLong).cumsum(0) - 1;
    const at::Tensor mask = got.mask[0].slice(0, 0, kept + 1).bitwise_right_shift(bits).bitwise_and(1);
    EXPECT_TRUE(mask.equal(tensor("mask")));
    const at::Tensor scores = pool.scores[0].to(at::kDouble).index_select(0, tensor("pool_index"));
    EXPECT_LE((scores - tensor("score")).abs().max().item<double>(), 1e-4);
    ++count;
  }
  EXPECT_EQ(count, 21);
}

}  // namespace
}  // namespace lamplighter::test
