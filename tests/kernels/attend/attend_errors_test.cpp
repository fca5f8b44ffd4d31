#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/kernels/attend/attend_problem.h"

namespace lamplighter::test {
namespace {

using ::testing::HasSubstr;

class AttendErrors : public ::testing::Test {
 protected:
  std::string failure(const std::function<void(AttendCall&)>& spoil) {
    std::mt19937 rng(1);
    AttendCall call = make_call(rng, {2, 3, 4, 2, 16, 5, 1}, at::kFloat);
    spoil(call);
    return message_of([&] { call.run(); });
  }
};

TEST_F(AttendErrors, Shapes) {
  EXPECT_EQ(failure([](AttendCall&) {}), "no error");
  EXPECT_THAT(failure([](AttendCall& c) { c.heads = 3; }), HasSubstr("attend: got 3 heads and 2 kv_heads"));
  EXPECT_THAT(failure([](AttendCall& c) { c.layer = 2; }), HasSubstr("attend: layer is 2, the cache has 2"));
  EXPECT_THAT(failure([](AttendCall& c) { c.qkv = c.qkv.narrow(2, 0, 96).contiguous(); }),
              HasSubstr("attend: qkv has shape [2, 3, 96], expected [-1, -1, 128]"));
  EXPECT_THAT(failure([](AttendCall& c) { c.positions = c.positions.narrow(1, 0, 2).contiguous(); }),
              HasSubstr("attend: positions has shape [2, 2], expected [2, 3]"));
  EXPECT_THAT(failure([](AttendCall& c) { c.lengths = c.lengths.narrow(0, 0, 1); }),
              HasSubstr("attend: lengths has shape [1], expected [2]"));
  EXPECT_THAT(failure([](AttendCall& c) {
                c.lengths = at::stack({c.lengths, c.lengths, c.lengths});
              }),
              HasSubstr("attend: lengths has shape [3, 2], expected [2, 2]"));
  EXPECT_THAT(failure([](AttendCall& c) { c.tree_mask = c.tree_mask.narrow(1, 0, 2).contiguous(); }),
              HasSubstr("attend: tree_mask has shape [1, 2, 1], expected [-1, 3, 1]"));
  EXPECT_THAT(failure([](AttendCall& c) { c.rotary = rotary_table(8, 8); }),
              HasSubstr("attend: rotary has shape [8, 4, 2], expected [-1, 8, 2]"));
  EXPECT_THAT(failure([](AttendCall& c) { c.cache = c.cache[0]; }), HasSubstr("attend: cache has shape"));
}

TEST_F(AttendErrors, DtypesAndLayout) {
  EXPECT_THAT(failure([](AttendCall& c) { c.cache = c.cache.to(at::kBFloat16); }),
              HasSubstr("attend: cache has dtype BFloat16, expected Float or Char (rounded)"));
  EXPECT_THAT(failure([](AttendCall& c) { c.qkv = c.qkv.to(at::kHalf); }),
              HasSubstr("attend: qkv has dtype Half, expected float32 or bfloat16"));
  EXPECT_THAT(failure([](AttendCall& c) { c.positions = c.positions.to(at::kInt); }),
              HasSubstr("attend: positions has dtype Int, expected Long"));
  EXPECT_THAT(failure([](AttendCall& c) {
                c.qkv = at::cat({c.qkv, c.qkv}, 2).narrow(2, 0, 128);
              }),
              HasSubstr("expected a contiguous tensor"));
}

TEST_F(AttendErrors, Contents) {
  EXPECT_THAT(failure([](AttendCall& c) { c.lengths[1] = 9; }),
              HasSubstr("attend: sequence 1 holds 9 keys and gets 3 more, the cache has room for 11"));
  EXPECT_THAT(failure([](AttendCall& c) { c.lengths[0] = -1; }),
              HasSubstr("attend: sequence 0 holds -1 keys"));
  EXPECT_THAT(failure([](AttendCall& c) { c.positions[1][2] = kTableRows; }),
              HasSubstr("attend: position 64 of row 2 in sequence 1 is outside the rotary table of 64 rows"));
  EXPECT_THAT(failure([](AttendCall& c) { c.positions[0][0] = -1; }), HasSubstr("attend: position -1"));
  EXPECT_THAT(failure([](AttendCall& c) { c.tree_mask[0][1][0] = 1; }),
              HasSubstr("attend: row 1 of mask 0 of tree_mask does not see itself"));
}

TEST_F(AttendErrors, ContentsOfTreesOfSeveralCalls) {
  const auto grow = [](AttendCall& c, int64_t columns) {
    c.lengths.fill_(5);
    c.lengths = at::stack({c.lengths - columns, c.lengths});
    c.tree_mask.fill_(-1);
  };
  EXPECT_EQ(failure([&](AttendCall& c) { grow(c, 4); }), "no error");
  EXPECT_THAT(failure([&](AttendCall& c) {
                grow(c, 4);
                c.lengths[0][1] = 6;
              }),
              HasSubstr("attend: sequence 1 holds 5 keys, its prefix has 6, expected 0..5"));
  EXPECT_THAT(failure([&](AttendCall& c) { grow(c, 6); }), HasSubstr("its prefix has -1"));
  EXPECT_THAT(failure([&](AttendCall& c) {
                grow(c, 4);
                c.tree_mask[0][1][0] = 0b1011111;
              }),
              HasSubstr("attend: row 1 of mask 0 of tree_mask does not see itself"));
  EXPECT_THAT(failure([&](AttendCall& c) {
                c.cache = at::zeros({2, 2, 2, 2, 70, 16});
                c.lengths = at::stack({c.lengths * 0, c.lengths * 0 + 62});
                c.tree_mask.fill_(-1);
              }),
              HasSubstr("attend: rows of tree_mask have 1 words, expected at least 2 for 65 columns of"));
}

}  // namespace
}  // namespace lamplighter::test
