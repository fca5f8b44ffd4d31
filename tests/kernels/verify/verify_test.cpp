#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "kernels/common/isa.h"
#include "tests/kernels/common/kernel_test.h"
#include "tests/kernels/verify/verify_problem.h"

namespace lamplighter::test {
namespace {

using namespace reference;

constexpr double kTolerance = 5e-6;  // of a final distribution in single precision
constexpr double kMargin = 1e-6;     // decisions closer than this are rounding

struct Case {
  Rule rule = Rule::exact;
  Residual residual = Residual::paper;
  bool sampled = true;
  bool greedy = false;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Rule rule : {Rule::exact, Rule::lantern, Rule::lantern_plus}) {
    for (const bool sampled : {true, false}) {
      for (const Residual residual : {Residual::paper, Residual::optimal}) {
        all.push_back({rule, residual, sampled, false});
      }
      all.push_back({rule, Residual::paper, sampled, true});
    }
    for (const Residual residual : {Residual::official_static, Residual::official_lumina_static}) {
      all.push_back({rule, residual, true, false});
    }
    for (const Residual residual : {Residual::official_dynamic, Residual::official_lumina_dynamic}) {
      all.push_back({rule, residual, false, false});
    }
    all.push_back({rule, Residual::official_static, true, true});
  }
  for (const bool sampled : {true, false}) {
    for (const Rule rule : {Rule::cool, Rule::typical, Rule::grouped, Rule::lenient}) {
      all.push_back({rule, Residual::paper, sampled, false});
      all.push_back({rule, Residual::paper, sampled, true});
    }
  }
  all.push_back({Rule::official_pac, Residual::paper, true, false});
  all.push_back({Rule::official_pac, Residual::paper, true, true});
  for (const Rule rule : {Rule::traversal, Rule::block}) {
    all.push_back({rule, Residual::paper, true, false});
    all.push_back({rule, Residual::paper, false, false});
    all.push_back({rule, Residual::paper, false, true});
  }
  return all;
}

std::string describe(const Case& c) {
  return to_string(c.rule) + " " + to_string(c.residual) + (c.sampled ? " sampled" : " deterministic") +
         (c.greedy ? " greedy" : "");
}

// What a case and a random problem need of each other.
struct Trial {
  VerifyProblem problem;
  ops::VerifyOptions options;
  AcceptanceOptions host;

  ops::Verified run() const { return ops::verify_tree(problem.tree, options); }
};

// Vectors of the codes, or of some: then groups with other tokens are not measured.
void set_codebook(Trial& trial, std::mt19937& rng, int64_t codes) {
  if (pick(rng, 0, 3) == 0) return;
  const int64_t rows = pick(rng, 0, 2) == 0 ? codes : pick(rng, 1, codes), width = pick(rng, 1, 4);
  trial.options.codebook = at::empty({rows, width}, at::kFloat);
  float* values = trial.options.codebook.mutable_data_ptr<float>();
  for (int64_t row = 0; row < rows; ++row) {
    trial.host.codebook.emplace_back();
    for (int64_t i = 0; i < width; ++i) {
      *values = grid_uniform(rng);
      trial.host.codebook.back().push_back(*values++);
    }
  }
}

Trial make_trial(std::mt19937& rng, const Case& c, int64_t vocabulary) {
  VerifyShape shape;
  shape.vocabulary = vocabulary;
  shape.images = pick(rng, 1, 3);
  shape.nodes = pick(rng, 1, pick(rng, 0, 9) == 0 ? 64 : 20);
  shape.chain = c.rule == Rule::block;
  shape.sampled = c.sampled;
  shape.bad_rows = pick(rng, 0, 3) == 0 ? 0.15 : 0;
  shape.padding = pick(rng, 0, 3) == 0 ? 0.15 : 0;
  shape.codes = pick(rng, 2, vocabulary);
  shape.first_image_id = pick(rng, 0, vocabulary - shape.codes);
  shape.neighbours = traits_of(c.rule).borrows() ? pick(rng, 1, vocabulary) : 0;
  Trial trial{VerifyProblem(rng, shape), {}, {}};
  if (c.greedy) trial.problem.tree.temperature.zero_();
  trial.options.rule = c.rule;
  trial.options.residual = c.residual;
  trial.options.sampled = c.sampled;
  trial.options.k = pick(rng, 0, vocabulary);
  trial.options.neighbours = trial.problem.neighbours;
  trial.options.first_image_id = shape.first_image_id;
  std::vector<float> bounds(static_cast<size_t>(pick(rng, 1, 3)));
  for (float& bound : bounds) {
    bound = c.rule == Rule::lantern ? 0.4F * grid_uniform(rng)
            : c.rule == Rule::cool  ? 3 * grid_uniform(rng)
                                    : 1 + 4 * grid_uniform(rng);
  }
  if (c.rule == Rule::grouped) set_codebook(trial, rng, shape.codes);
  if (c.rule == Rule::grouped) bounds = {0.3F * grid_uniform(rng), grid_uniform(rng)};
  if (c.rule == Rule::typical) bounds = {0.3F * grid_uniform(rng), grid_uniform(rng)};
  trial.options.numbers = numbers_of(c.rule, bounds);
  trial.host.rule = c.rule;
  trial.host.residual = c.residual;
  trial.host.proposal = c.sampled ? Proposal::sampled : Proposal::deterministic;
  trial.host.greedy = c.greedy;
  trial.host.k = trial.options.k;
  trial.host.bounds.assign(bounds.begin(), bounds.end());
  trial.host.first_image_id = shape.first_image_id;
  // Every other id outside the codes; some of the codes, which stay codes.
  for (int64_t id = pick(rng, 0, 1); id < vocabulary; id += 2) trial.host.syntax_ids.push_back(id);
  trial.options.syntax_ids = at::tensor(trial.host.syntax_ids);
  return trial;
}

std::vector<int64_t> row_of(const at::Tensor& path, int64_t image) {
  const int64_t* p = path.const_data_ptr<int64_t>() + image * path.size(1);
  return {p, p + path.size(1)};
}

bool is_close_call(const Verdict& verdict) {
  return std::any_of(verdict.tests.begin(), verdict.tests.end(), [](const Test& test) {
    return std::abs(test.uniform * test.denominator - test.numerator) < kMargin;
  });
}

// Whether `token` is sampled by `uniform` up to the margin.
void expect_sampled(int64_t token, const Distribution& final, double uniform) {
  ASSERT_GE(token, 0);
  ASSERT_GT(final[static_cast<size_t>(token)], 0);
  double before = 0;
  for (int64_t i = 0; i < token; ++i) before += final[static_cast<size_t>(i)];
  EXPECT_GE(uniform, before - kMargin);
  EXPECT_LT(uniform, before + final[static_cast<size_t>(token)] + kMargin);
}

void expect_same(const ops::Verified& result, int64_t image, const Verdict& verdict, const Trial& trial,
                 double uniform) {
  std::vector<int64_t> path = verdict.path;
  path.resize(static_cast<size_t>(trial.problem.tree.depth + 1), -1);
  ASSERT_EQ(row_of(result.path, image), path);
  EXPECT_EQ(result.count[image].item<int64_t>(), static_cast<int64_t>(verdict.path.size()) - 1);
  EXPECT_EQ(result.status[image].item<int64_t>(), verdict.status);
  const float* final = result.final.const_data_ptr<float>() + image * result.final.size(1);
  for (size_t i = 0; i < verdict.final.size(); ++i) ASSERT_NEAR(final[i], verdict.final[i], kTolerance) << i;
  const int64_t token = result.token[image].item<int64_t>();
  if (verdict.token < 0 || trial.host.greedy) {
    EXPECT_EQ(token, verdict.token);
  } else {
    expect_sampled(token, verdict.final, uniform);
  }
}

class VerifyTest : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    at::set_num_threads(1);
    if (limit_isa(GetParam()) != GetParam()) GTEST_SKIP() << "not on this CPU";
  }
  void TearDown() override { limit_isa(kBestIsa); }

  std::mt19937 rng_{20240229};
};

TEST_P(VerifyTest, AgreesWithTheHost) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(describe(c));
    int64_t verified = 0, accepted = 0, rejected = 0, close = 0;
    for (int repeat = 0; repeat < 120; ++repeat) {
      const int64_t vocabulary = repeat % 10 == 0 ? pick(rng_, 100, 300) : pick(rng_, 3, 24);
      const Trial trial = make_trial(rng_, c, vocabulary);
      const ops::Verified result = trial.run();
      for (int64_t image = 0; image < result.count.size(0); ++image) {
        const ScoredTree tree = trial.problem.host(image);
        const Verdict verdict =
            reference::verify(tree, trial.host, traits_of(c.rule).borrows() ? &trial.problem.table : nullptr);
        ++verified;
        accepted += static_cast<int64_t>(verdict.path.size()) - 1;
        rejected += verdict.reason == Reason::rejected ? 1 : 0;
        if (is_close_call(verdict)) {
          ++close;
          continue;
        }
        SCOPED_TRACE(repeat);
        expect_same(result, image, verdict, trial, tree.uniforms[0]);
        if (HasFatalFailure()) return;
      }
    }
    EXPECT_GT(accepted, verified / 10);
    EXPECT_GT(rejected, verified / 10);
    EXPECT_LT(close, verified / 50);
  }
}

void expect_equal(const ops::Verified& a, const ops::Verified& b) {
  EXPECT_TRUE(a.path.equal(b.path));
  EXPECT_TRUE(a.count.equal(b.count));
  EXPECT_TRUE(a.token.equal(b.token));
  EXPECT_TRUE(same_bits(a.final, b.final));
  EXPECT_TRUE(a.status.equal(b.status));
}

TEST_P(VerifyTest, BoundsThatAllowNothingAreExactBitByBit) {
  for (const bool greedy : {false, true}) {
    for (const bool sampled : {true, false}) {
      for (const Rule rule : {Rule::lantern, Rule::lantern_plus, Rule::cool, Rule::lenient}) {
        for (int repeat = 0; repeat < 60; ++repeat) {
          Trial trial = make_trial(rng_, {rule, Residual::paper, sampled, greedy}, pick(rng_, 3, 80));
          const ops::VerifyOptions relaxed = trial.options;
          trial.options.rule = Rule::exact;
          const ops::Verified exact = trial.run();
          trial.options = relaxed;
          trial.options.k = 0;
          const bool weighs = rule == Rule::cool || rule == Rule::lenient;
          if (weighs) trial.options.numbers = numbers_of(rule, {1});
          expect_equal(trial.run(), exact);
          if (weighs) continue;
          for (const float bound : {rule == Rule::lantern ? 0.0F : 1.0F, -1.0F}) {
            trial.options = relaxed;
            trial.options.k = 5;
            trial.options.numbers = numbers_of(rule, {bound});
            expect_equal(trial.run(), exact);
          }
        }
      }
    }
  }
}

at::Tensor image_of(const at::Tensor& tensor, int64_t image) {
  return tensor.size(0) == 1 ? tensor : tensor.narrow(0, image, 1).contiguous();
}

TEST_P(VerifyTest, AnImageDependsOnItselfAlone) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(describe(c));
    Trial batch = make_trial(rng_, c, 40);
    const ops::Verified all = batch.run();
    const ops::ScoredTree tree = batch.problem.tree;
    for (int64_t image = 0; image < all.count.size(0); ++image) {
      Trial alone = batch;
      for (at::Tensor ops::ScoredTree::*member :
           {&ops::ScoredTree::tokens, &ops::ScoredTree::parents, &ops::ScoredTree::draft_rows,
            &ops::ScoredTree::uniforms, &ops::ScoredTree::temperature}) {
        alone.problem.tree.*member = image_of(tree.*member, image);
      }
      for (ops::Distributions ops::ScoredTree::*member :
           {&ops::ScoredTree::target, &ops::ScoredTree::draft}) {
        alone.problem.tree.*member = image_of((tree.*member).values, image);
      }
      const ops::Verified one = alone.run();
      expect_equal(one, {image_of(all.path, image), image_of(all.count, image), image_of(all.token, image),
                         image_of(all.final, image), image_of(all.status, image)});
    }
    // A tree for each image, and threads.
    batch.problem.tree.parents = tree.parents.expand({all.count.size(0), -1}).contiguous();
    batch.problem.tree.draft_rows = tree.draft_rows.expand({all.count.size(0), -1}).contiguous();
    at::set_num_threads(2);
    expect_equal(batch.run(), all);
    at::set_num_threads(1);
  }
}

TEST_P(VerifyTest, EqualBitsForAllInstructionSets) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(describe(c));
    for (int repeat = 0; repeat < 10; ++repeat) {
      const Trial trial = make_trial(rng_, c, pick(rng_, 3, 200));
      limit_isa(GetParam());
      const ops::Verified result = trial.run();
      limit_isa(Isa::kPortable);
      expect_equal(trial.run(), result);
      limit_isa(GetParam());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Verify, VerifyTest, instruction_sets(),
                         [](const auto& set) { return isa_name(set.param); });

TEST(VerifyTreeTest, OnCudaTheSameDecisions) {
  if (!at::globalContext().hasCUDA()) GTEST_SKIP() << "no CUDA device";
  std::mt19937 rng(5);
  for (const Case& c : cases()) {
    SCOPED_TRACE(describe(c));
    for (int repeat = 0; repeat < 20; ++repeat) {
      Trial trial = make_trial(rng, c, pick(rng, 3, 3000));
      const ops::Verified cpu = trial.run();
      trial.problem.tree = on_device(trial.problem.tree, at::kCUDA);
      trial.options.syntax_ids = trial.options.syntax_ids.to(at::kCUDA);
      if (trial.options.neighbours.defined()) {
        trial.options.neighbours = trial.options.neighbours.to(at::kCUDA);
      }
      if (trial.options.codebook.defined()) trial.options.codebook = trial.options.codebook.to(at::kCUDA);
      const ops::Verified cuda = trial.run();
      EXPECT_TRUE(cuda.path.cpu().equal(cpu.path));
      EXPECT_TRUE(cuda.count.cpu().equal(cpu.count));
      EXPECT_TRUE(cuda.token.cpu().equal(cpu.token));
      EXPECT_TRUE(cuda.status.cpu().equal(cpu.status));
      EXPECT_LE((cuda.final.cpu() - cpu.final).abs().max().item<float>(), 1e-6F);
    }
  }
}

}  // namespace
}  // namespace lamplighter::test
