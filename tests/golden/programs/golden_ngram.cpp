// Replays a recorded case of prompt lookup, or of the pool and window of lookahead decoding: golden_ngram
// CASE_DIR Prints the first deviation of every sequence that deviates. Exit code 0: none; 1: some; 3:
// unreadable.
#include <iostream>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/json.h"
#include "draft/lookup/ngram.h"
#include "draft/lookup/ngram_pool.h"

using namespace lamplighter;

namespace {

using Tokens = std::vector<std::int64_t>;

int deviates(const std::string& what, const Json& got, const Json& expected) {
  if (nlohmann::json::parse(got.dump()) == nlohmann::json::parse(expected.dump())) return 0;  // in any order
  std::cout << what << ": got " << got.dump() << ", expected " << expected.dump() << "\n";
  return 1;
}

int replay_lookups(const Json& cases) {
  int deviations = 0;
  Tokens tokens;
  for (const Json& test : cases) {
    if (!test.at("tokens").is_null()) tokens = test.at("tokens").get<Tokens>();
    const Tokens got =
        prompt_lookup(tokens.data(), static_cast<std::int64_t>(tokens.size()),
                      test.at("max_ngram").get<std::int64_t>(), test.at("predict").get<std::int64_t>());
    deviations += deviates("sequence " + test.at("sequence").dump(), got, test.at("proposal"));
  }
  return deviations;
}

// Pool and window of a run. Records count levels: one more than the tokens of a tail.
class Lookahead {
 public:
  explicit Lookahead(const Json& run)
      : tokens_(run.at("vocabulary").get<std::int64_t>()),
        length_(run.at("level").get<std::int64_t>() - 1),
        columns_(run.at("window").get<std::int64_t>()),
        guesses_(run.at("guess_set").get<std::int64_t>()),
        tails_(static_cast<std::size_t>(tokens_ * guesses_ * length_), -1) {}

  int replay(const Json& event, const std::string& where) {
    NgramPool pool{tails_.data(), tokens_, guesses_, length_};
    if (event.at("event") != "step") {
      if (event.at("event") == "fill_pool_with_prompt") follow(event.at("prompt"), pool);
      return deviates(where + " pool", contents(pool), event.at("pool"));
    }
    const auto last = event.at("last_token").get<std::int64_t>();
    int deviations = deviates(where + " guesses", pool.of(last), event.at("guesses_offered"));
    levels_.clear();
    for (const Json& level : event.at("window_before")) {
      const Tokens tokens = level.get<Tokens>();
      levels_.insert(levels_.end(), tokens.begin(), tokens.end());
      levels_.resize((levels_.size() + static_cast<std::size_t>(columns_) - 1) /
                     static_cast<std::size_t>(columns_) * static_cast<std::size_t>(columns_));
    }
    const NgramWindow window{levels_.data(), length_, columns_};
    const Tokens next = event.at("new_results").get<Tokens>();
    window.update(last, next.data(), pool);
    if (!text_.empty()) follow(event.at("emitted"), pool);
    deviations += deviates(where + " pool", contents(pool), event.at("pool"));
    return deviations + deviates(where + " window", rows(), event.at("window_after"));
  }

 private:
  // Adds n-grams of the generated text to the pool, as for the prompt.
  void follow(const Json& tokens, NgramPool& pool) {
    const auto known = static_cast<std::int64_t>(text_.size());
    for (const Json& token : tokens) text_.push_back(token.get<std::int64_t>());
    pool.add_runs(text_.data(), known, static_cast<std::int64_t>(text_.size()));
  }

  Json contents(const NgramPool& pool) const {
    Json all = Json::object();
    for (std::int64_t token = 0; token < tokens_; ++token) {
      const auto tails = pool.of(token);
      if (!tails.empty()) all[std::to_string(token)] = tails;
    }
    return all;
  }

  Json rows() const {
    Json all = Json::array();
    for (std::int64_t level = 0; level < length_; ++level) {
      const auto begin = levels_.begin() + level * columns_;
      all.push_back(Tokens(begin, begin + columns_ - (level == 0 ? 1 : 0)));
    }
    return all;
  }

  std::int64_t tokens_, length_, columns_, guesses_;
  Tokens tails_, levels_, text_;
};

int replay_runs(const Json& runs) {
  int deviations = 0;
  for (std::size_t number = 0; number < runs.size(); ++number) {
    Lookahead lookahead(runs[number]);
    int event_number = 0;
    for (const Json& event : runs[number].at("events")) {
      const std::string where = "run " + std::to_string(number) + " event " + std::to_string(event_number++);
      if (const int found = lookahead.replay(event, where); found != 0) {
        deviations += found;
        break;
      }
    }
  }
  return deviations;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::cerr << "usage: golden_ngram CASE_DIR\n";
    return 2;
  }
  try {
    const std::string path = std::string(arguments[1]) + "/case.json";
    const Json recorded = parse_json(read_file(path), path, ExitCode::input);
    const bool lookahead = recorded.contains("runs");
    return (lookahead ? replay_runs(recorded.at("runs")) : replay_lookups(recorded.at("cases"))) == 0 ? 0 : 1;
  } catch (const Error& error) {
    std::cerr << "golden_ngram: " << error.what() << "\n";
  } catch (const Json::exception& error) {
    std::cerr << "golden_ngram: " << arguments[1] << "/case.json: " << error.what() << "\n";
  }
  return static_cast<int>(ExitCode::input);
}
