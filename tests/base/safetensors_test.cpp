#include "base/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "tests/error_of.h"

namespace lamplighter {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string file_of(const std::string& header, std::size_t data_bytes) {
  const std::uint64_t length = header.size();
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes + header + std::string(data_bytes, '\1');
}

Safetensors parse(const std::string& bytes) {
  return Safetensors::parse(bytes, "f", ExitCode::bundle);
}

std::string message_of(const std::string& bytes) {
  return error_of(ExitCode::bundle, [&] { parse(bytes); });
}

TEST(Safetensors, ComesBackAsWritten) {
  const std::string floats(24, 'x'), ints(8, 'y');
  const std::string bytes = encode_safetensors(
      {{"a", {"U8", {8}, ints}}, {"b", {"F32", {2, 3}, floats}}, {"none", {"F32", {0, 4}, ""}}},
      {{"k", "v"}});
  const Safetensors file = parse(bytes);
  ASSERT_EQ(file.tensors().size(), 3U);
  EXPECT_EQ(file.at("a").bytes, ints);
  EXPECT_EQ(file.at("b").dtype, "F32");
  EXPECT_THAT(file.at("b").shape, ElementsAre(2, 3));
  EXPECT_EQ(file.at("b").bytes, floats);
  EXPECT_EQ(file.at("none").bytes.size(), 0U);
  EXPECT_EQ(file.metadata().at("k"), "v");
  EXPECT_THROW(file.at("z"), Error);
}

TEST(Safetensors, ViewsSurviveAMove) {
  Safetensors first = parse(encode_safetensors({{"a", {"U8", {3}, "abc"}}}));
  const Safetensors second = std::move(first);
  EXPECT_EQ(second.at("a").bytes, "abc");
}

TEST(Safetensors, RejectsHostileHeaders) {
  const auto entry = [](const std::string& body) { return file_of("{\"a\":" + body + "}", 8); };
  EXPECT_THAT(message_of(""), HasSubstr("not a safetensors file"));
  EXPECT_THAT(message_of(std::string(8, '\xff')), HasSubstr("not a safetensors file"));
  EXPECT_THAT(message_of(file_of("{", 0)), HasSubstr("invalid JSON"));
  EXPECT_THAT(message_of(file_of("[]", 0)), HasSubstr("JSON object"));
  EXPECT_THAT(message_of(entry(R"({"dtype":"F99","shape":[2],"data_offsets":[0,8]})")), HasSubstr("dtype"));
  EXPECT_THAT(message_of(entry(R"({"dtype":"F32","shape":[2],"data_offsets":[0,9]})")),
              HasSubstr("data_offsets"));
  EXPECT_THAT(message_of(entry(R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})")),
              HasSubstr("data_offsets"));
  EXPECT_THAT(message_of(entry(R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})")),
              HasSubstr("12 bytes"));
  EXPECT_THAT(message_of(entry(R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})")), HasSubstr("shape"));
  EXPECT_THAT(message_of(entry(R"({"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,8]})")),
              HasSubstr("shape"));
  EXPECT_THAT(message_of(entry(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1})")),
              HasSubstr("unknown"));
  EXPECT_THAT(message_of(file_of(R"({"a":{"dtype":"U8","shape":[5],"data_offsets":[0,5]},
                                      "b":{"dtype":"U8","shape":[5],"data_offsets":[3,8]}})",
                                 8)),
              HasSubstr("overlap"));
}

TEST(Safetensors, EveryTruncationIsAnError) {
  const std::string bytes = encode_safetensors({{"a", {"F32", {2, 3}, std::string(24, 'x')}}});
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THROW(parse(bytes.substr(0, size)), Error) << size;
  }
}

}  // namespace
}  // namespace lamplighter
