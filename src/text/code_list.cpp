#include "text/code_list.h"

#include <algorithm>
#include <charconv>
#include <functional>

#include "base/files.h"
#include "base/format.h"
#include "base/json.h"
#include "base/message.h"
#include "lamplighter/error.h"

namespace lamplighter {
namespace {

constexpr std::string_view kBetween = " \t\r\n,";
constexpr std::int64_t kMostCodes = std::int64_t{1} << 31;
constexpr std::int64_t kMostLength = std::int64_t{1} << 20;

}  // namespace

CodeLists::CodeLists(const std::string& file) {
  const Json content = parse_json(read_file(file, ExitCode::bundle), file, ExitCode::bundle);
  JsonReader reader(content, file, ExitCode::bundle);
  codes_ = reader.integer("codes", 1, kMostCodes);
  lengths_ = reader.integers("lengths");
  const bool ascend =
      std::adjacent_find(lengths_.begin(), lengths_.end(), std::greater_equal<>()) == lengths_.end();
  if (lengths_.empty() || !ascend || lengths_.front() < 1 || lengths_.back() > kMostLength)
    reader.reject("lengths", "ascending numbers of 1 to " + std::to_string(kMostLength));
  reader.finish();
}

std::int64_t CodeLists::parse(std::string_view word) const {
  std::int64_t code = -1;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), code);
  if (error != std::errc() || end != word.data() + word.size() || code < 0 || code >= codes_) {
    throw Error(ExitCode::input,
                "prompt: got " + quote(word) + ", expected a list of " + describe() +
                    "; --prompt-codes FILE takes it from a file that generate --save-codes wrote");
  }
  return code;
}

std::vector<std::int64_t> CodeLists::encode(std::string_view prompt) const {
  std::vector<std::int64_t> list;
  for (std::size_t begin = prompt.find_first_not_of(kBetween); begin != std::string_view::npos;) {
    const std::size_t end = std::min(prompt.find_first_of(kBetween, begin), prompt.size());
    list.push_back(parse(prompt.substr(begin, end - begin)));
    begin = prompt.find_first_not_of(kBetween, end);
  }
  const auto length = static_cast<std::int64_t>(list.size());
  if (std::find(lengths_.begin(), lengths_.end(), length) == lengths_.end())
    throw Error(ExitCode::input, "prompt: got " + counted(length, "code") + ", expected " + describe());
  return list;
}

std::string CodeLists::describe() const {
  std::string lengths;
  for (std::size_t i = 0; i < lengths_.size(); ++i) {
    const char* before = i == 0 ? "" : i + 1 == lengths_.size() ? " or " : ", ";
    lengths += before + std::to_string(lengths_[i]);
  }
  return lengths + " codes of 0.." + std::to_string(codes_ - 1);
}

std::string code_list(const std::vector<std::int32_t>& codes) {
  std::string text;
  for (const std::int32_t code : codes) text += (text.empty() ? "" : " ") + std::to_string(code);
  return text;
}

}  // namespace lamplighter
