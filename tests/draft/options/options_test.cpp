#include "draft/options/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "bench/methods.h"
#include "lamplighter/error.h"
#include "tests/error_of.h"

namespace lamplighter {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::StartsWith;

// A value of the option as a word and as JSON.
struct Sample {
  std::string word;
  Json json;
};
Sample sample_of(const MethodOption& option) {
  struct {
    std::string text;
    Sample operator()(std::string MethodOptions::*) const { return {text, text}; }
    Sample operator()(std::optional<std::int64_t> MethodOptions::*) const { return {"3", 3}; }
    Sample operator()(std::optional<float> MethodOptions::*) const { return {"0.3", 0.3}; }
    Sample operator()(std::vector<float> MethodOptions::*) const { return {"3/2.5", {3.0, 2.5}}; }
  } sample{option.limits.choices.empty() ? "some/name-4" : option.limits.choices.front()};
  return std::visit(sample, option.field);
}

std::vector<std::string> set_in(const MethodOptions& method) {
  std::vector<std::string> keys;
  for (const MethodOption& option : method_options()) {
    if (is_set(method, option)) keys.push_back(option.key);
  }
  return keys;
}

bool same(const MethodOptions& a, const MethodOptions& b, const MethodOption& option) {
  return std::visit([&](auto field) { return a.*field == b.*field; }, option.field);
}

MethodOptions read(const Json& json) {
  JsonReader reader(json, "here", ExitCode::input);
  MethodOptions method = read_options(reader);
  reader.finish();
  return method;
}

template <class... T>
constexpr std::size_t count(const T&...) {
  return sizeof...(T);
}

// Does not compile where a field is added to MethodOptions: its row is to be added, too.
TEST(MethodOptionTable, HasARowForEveryFieldButTheName) {
  const auto& [method, rule, tree, children, residual, draft_guidance, drafter, neighbours, init, tail, zipar,
               draft_length, draft_confidence, draft_layers, draft_window, front, k, delta, mu, nu, lenience,
               epsilon, alpha, group_gap, group_distance, steps, prefill_ratio, gamma, cap, last_noise, ahead,
               lambda, dynamic_depth, dynamic_width, dynamic_nodes, adapt] = MethodOptions{};
  EXPECT_EQ(method_options().size() + 1,
            count(method, rule, tree, children, residual, draft_guidance, drafter, neighbours, init, tail,
                  zipar, draft_length, draft_confidence, draft_layers, draft_window, front, k, delta, mu, nu,
                  lenience, epsilon, alpha, group_gap, group_distance, steps, prefill_ratio, gamma, cap,
                  last_noise, ahead, lambda, dynamic_depth, dynamic_width, dynamic_nodes, adapt));
  std::set<std::string> keys, words, labels;
  for (const MethodOption& option : method_options()) {
    keys.insert(option.key);
    words.insert(option.word);
    labels.insert(option.label);
    EXPECT_NE(option.help, "") << option.key;
    EXPECT_NE(option.usual.words, "") << option.key;
    EXPECT_STRNE(option.group, "") << option.key;
    EXPECT_STRNE(option.value, "") << option.key;
  }
  for (const auto& names : {keys, words, labels}) EXPECT_EQ(names.size(), method_options().size());
  for (const MethodOption& option : method_options())
    EXPECT_TRUE(*option.follows == '\0' || keys.count(option.follows) == 1) << option.key;
}

TEST(MethodOptionTable, AWordAndJsonSetTheSameFieldAndNoOther) {
  for (const MethodOption& option : method_options()) {
    const Sample sample = sample_of(option);
    const MethodOptions word = parse_method("eagle:" + std::string(option.word) + "=" + sample.word);
    EXPECT_THAT(set_in(word), ElementsAre(option.key));
    const MethodOptions json = read({{option.key, sample.json}});
    EXPECT_THAT(set_in(json), ElementsAre(option.key));
    EXPECT_TRUE(same(word, json, option)) << option.key;
    EXPECT_NO_THROW(check_options(word)) << option.key;
  }
}

TEST(MethodOptionTable, WhatIsWrittenIsReadAgain) {
  for (const MethodOption& option : method_options()) {
    MethodOptions method = read({{option.key, sample_of(option).json}});
    for (const char* name :
         {"eagle:rule=cool", "eagle:rule=typical", "eagle:rule=lenient", "gsd", "lantern++", "lantern"}) {
      const MethodOptions reader = parse_method(name);
      if (!is_read(reader, option) || option.key == std::string("rule")) continue;
      method.method = reader.method;
      method.rule = reader.rule;
    }
    Json json = Json::object();
    write_options(method, json);
    const MethodOptions again = read(json);
    for (const MethodOption& other : method_options())
      EXPECT_TRUE(same(method, again, other)) << option.key << ": " << other.key;
  }
}

// Rules of one family share a number: each has a range and a default of its own.
TEST(MethodOptionTable, NumbersOfRulesAreOptions) {
  for (const RuleTraits& rule : kRules) {
    const MethodOptions method = parse_method(std::string("eagle:rule=") + rule.name);
    for (const RuleTraits& other : kRules) {
      for (const RuleOption& number : other.options) {
        if (number.key == nullptr) continue;
        const bool own = std::any_of(rule.options.begin(), rule.options.end(), [&](const RuleOption& one) {
          return one.key != nullptr && std::string(one.key) == number.key;
        });
        EXPECT_EQ(is_read(method, find_option(number.word, "here")), own) << rule.name << " " << number.key;
      }
    }
  }
  const MethodOption& delta = find_option("delta", "here");
  EXPECT_EQ(delta.help,
            "Largest probability that neighbours may lend (lantern); scale of the weights (cool)");
  EXPECT_EQ(delta.usual.words, "0.05 (lantern), 4 (cool)");
  EXPECT_THAT(find_option("nu", "here").help, EndsWith("(cool)"));
  EXPECT_EQ(find_option("nu", "here").usual.words, "0.7");
}

TEST(MethodOptionTable, WhatTheRuleDoesNotReadIsNotWritten) {
  Json json = Json::object();
  write_options(parse_method("eagle:k=0:residual=paper:tree=chain-2"), json);
  EXPECT_EQ(json, Json({{"tree", "chain-2"}}));
  write_options(parse_method("eagle:rule=cool:k=0:residual=paper:delta=3"), json = Json::object());
  EXPECT_EQ(json, Json({{"rule", "cool"}, {"delta", 3.0}}));
}

TEST(MethodOptionTable, NumbersThatTheRunReadsAreWords) {
  MethodOptions method;
  method.method = "lantern++";
  EXPECT_EQ(number_words(method), "");
  method.tree = "chain-5";
  method.k = 10;
  method.lambda = {3, 2.5F};
  method.delta = 0.1F;  // of another rule
  EXPECT_EQ(number_words(method), "k 10, lambda 3/2.5");
  method.lambda = {3};
  method.method = "zipar+sjd";
  method.ahead = 4;
  EXPECT_EQ(number_words(method), "ahead 4");
}

TEST(MethodOptionTable, WhatIsGivenGoesOverWhatIsRecorded) {
  for (const MethodOption& option : method_options()) {
    const MethodOptions one = read({{option.key, sample_of(option).json}});
    EXPECT_TRUE(same(merge_options({}, one), one, option)) << option.key;
    EXPECT_TRUE(same(merge_options(one, {}), one, option)) << option.key;
  }
  const MethodOptions recorded = parse_method("lantern:k=3:delta=0.5:tree=chain-2:neighbours=a.npy");
  const MethodOptions merged = merge_options(recorded, parse_method("ar:k=4"));
  EXPECT_EQ(merged.method, "lantern");
  EXPECT_EQ(merged.k, 4);
  EXPECT_EQ(merged.delta, 0.5F);
  EXPECT_EQ(merged.tree, "chain-2");
}

TEST(MethodOptionTable, AnotherRuleOrTreeDropsWhatFollowedTheOldOne) {
  const MethodOptions recorded = parse_method(
      "lantern:rule=lantern:k=3:delta=0.5:lambda=2:residual=optimal:neighbours=a.npy:tree=dynamic:depth=2:"
      "width=3:nodes=4");
  EXPECT_THAT(set_in(merge_options(recorded, parse_method("ar:rule=exact"))),
              ElementsAre("rule", "tree", "neighbours", "dynamic_depth", "dynamic_width", "dynamic_nodes"));
  EXPECT_THAT(set_in(merge_options(recorded, parse_method("ar:tree=chain-2"))),
              ElementsAre("rule", "tree", "relax_k", "delta", "lambda", "residual", "neighbours"));
  EXPECT_EQ(set_in(merge_options(recorded, parse_method("ar:rule=lantern:tree=dynamic"))), set_in(recorded));
  EXPECT_EQ(merge_options(recorded, parse_method("ar:rule=exact:k=9")).k, 9);
}

TEST(MethodOptionTable, WhatIsOutOfRangeIsNamed) {
  const auto refusal = [](const Json& json) -> std::string {
    return error_of([&] { check_options(read(json)); });
  };
  EXPECT_EQ(refusal({{"delta", -0.1}}), "delta: got -0.1, expected 0 or more");
  EXPECT_EQ(refusal({{"lambda", {2, 0.5}}}), "lambda: got 0.5, expected 1 or more");
  EXPECT_EQ(refusal({{"lambda", 0.5}}), "lambda: got 0.5, expected 1 or more");  // a list of one
  EXPECT_EQ(refusal({{"children", "all"}}), "children: got 'all', expected sampled, top");
  EXPECT_EQ(refusal({{"children", "sampled, top"}}), "children: got 'sampled, top', expected sampled, top");
  EXPECT_EQ(refusal({{"children", "samplet"}}),
            "children: got 'samplet', expected sampled, top; did you mean sampled?");
  for (const char* word : {"nan", "inf"}) {
    EXPECT_THROW(check_options(parse_method("lantern:delta=" + std::string(word))), Error);
    EXPECT_THROW(check_options(parse_method("lantern++:lambda=2/" + std::string(word))), Error);
    EXPECT_THROW(check_options(parse_method("eagle:rule=cool:mu=" + std::string(word))), Error);
  }
  for (const char* key : {"relax_k", "dynamic_depth", "dynamic_width", "dynamic_nodes"})
    EXPECT_THAT(refusal({{key, -1}}), StartsWith("here: " + std::string(key) + ": got -1")) << key;
  EXPECT_THROW(check_options(parse_method("lantern:k=-1")), Error);
  EXPECT_THROW(check_options(parse_method("eagle-2:depth=0")), Error);
  EXPECT_THAT(refusal({{"lambda", {"x"}}}), StartsWith("here: lambda: got [\"x\"], expected a list"));
}

}  // namespace
}  // namespace lamplighter
