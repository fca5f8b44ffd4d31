#include "bundle/manifest/text.h"

#include "tests/bundle/manifest/toy_manifest.h"

namespace lamplighter {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TextManifestTest : public ManifestTest {
 protected:
  // A bundle of 16 codes that describes images of 4 x 4.
  static void add_text(Json& json) {
    const Json file = {{"bytes", 6}, {"sha256", std::string(64, '0')}};
    json["files"]["tokenizer.json"] = file;
    json["tokenizer"] = {{"kind", "bpe"}, {"file", "tokenizer.json"}, {"max_length", 8}};
    json["prompt"] = {{"kind", "tokens"}, {"length", 24},   {"align", "start"},    {"text", "{prompt}"},
                      {"prefix", {0}},    {"suffix", {30}}, {"unconditional", {0}}};
    json["tokens"] = {{"vocabulary", 512}, {"first_image_id", 4}, {"codebook_size", 16}};
    json["target"]["head"] = 16;
    json["decoder"]["codebook_size"] = 16;
    json["grids"] = {{{"width", 32}, {"height", 32}, {"rows", 4}, {"columns", 4}}};
    json["modules"]["target"]["methods"] = {"forward_layers", "text_logits"};
    json["drafters"]["main"] = {
        {"file", "target.pt"}, {"dtype", "float32"}, {"kind", "medusa"}, {"heads", 2}};
    json["text"] = {{"prefix", {0}},        {"text", "{prompt}{image}"},
                    {"before_image", {20}}, {"length", 100},
                    {"after_image", {21}},  {"suffix", {30}},
                    {"stop", {30, 2}},      {"sampling", {{"temperature", 0.5}, {"top_p", 0.75}}}};
  }
  Manifest read_with_text() { return read(add_text); }
  std::string error_with(const std::function<void(Json&)>& change) {
    return error([&](Json& json) {
      add_text(json);
      change(json);
    });
  }
};

TEST_F(TextManifestTest, IsRead) {
  const Manifest manifest = read_with_text();
  ASSERT_TRUE(manifest.text);
  EXPECT_EQ(manifest.text->text, "{prompt}{image}");
  EXPECT_THAT(manifest.text->before_image, ElementsAre(20));
  EXPECT_THAT(manifest.text->stop, ElementsAre(30, 2));
  EXPECT_EQ(manifest.text->length, 100);
  EXPECT_FLOAT_EQ(manifest.text->sampling.temperature, 0.5F);
  EXPECT_FLOAT_EQ(manifest.text->sampling.top_p, 0.75F);
  EXPECT_FLOAT_EQ(manifest.text->sampling.cfg_scale, 1);  // texts are not guided
  EXPECT_EQ(fixed_ids(manifest), 16 + 4);
  require_text(manifest);
  EXPECT_THAT(error_of(ExitCode::bundle, [&] { require_text(read()); }), HasSubstr("--text"));
}

TEST_F(TextManifestTest, OfTextsHasAllIdsAndOneRow) {
  const Manifest manifest = read_with_text();
  const Manifest text = text_manifest(manifest, 40);
  EXPECT_EQ(text.tokens.first_image_id, 0);
  EXPECT_EQ(text.tokens.codebook_size, 512);
  EXPECT_EQ(text.target.head, 512);
  ASSERT_EQ(text.grids.size(), 1U);
  EXPECT_EQ(text.grids.front().tokens(), 40);
  EXPECT_EQ(text.prompt->length + text.grids.front().length(), 100);
  EXPECT_EQ(text.cache.max_length, 100);
  EXPECT_FLOAT_EQ(text.sampling.temperature, 0.5F);
  EXPECT_TRUE(text.drafters.empty());
  EXPECT_FALSE(manifest.drafters.empty());
}

Json eagle_of(std::int64_t length) {
  return {{"file", "target.pt"}, {"dtype", "float32"}, {"kind", "eagle"},     {"layers", 1},
          {"kv_heads", 2},       {"head_dim", 16},     {"max_length", length}};
}

TEST_F(TextManifestTest, HasDraftersOfItsOwn) {
  const Manifest manifest = read([](Json& json) {
    add_text(json);
    json["text"]["drafters"] = {{"words", eagle_of(99)}};
  });
  EXPECT_EQ(manifest.drafters.count("words"), 0U);
  EXPECT_EQ(manifest.first_drafter, "main");
  const Manifest text = text_manifest(manifest, 40);
  EXPECT_EQ(text.drafters.size(), 1U);
  EXPECT_EQ(text.drafters.at("words").kv_heads, 2);
  EXPECT_EQ(text.first_drafter, "words");
  EXPECT_EQ(manifest.all_drafters().size(), 2U);
}

TEST_F(TextManifestTest, RejectsDraftersThatDoNotFit) {
  const auto with = [&](const char* name, const Json& drafter) {
    return error_with([&](Json& json) { json["text"]["drafters"] = {{name, drafter}}; });
  };
  EXPECT_THAT(with("words", eagle_of(98)),
              HasSubstr("text.drafters.words.max_length 98 disagrees with cache.max_length 100"));
  EXPECT_THAT(with("main", eagle_of(100)),
              HasSubstr("text.drafters: got main, expected a name that no drafter"));
  const Json heads = {{"file", "target.pt"}, {"dtype", "float32"}, {"kind", "medusa"}, {"heads", 2}};
  EXPECT_THAT(with("words", heads),
              HasSubstr("text.drafters.words.kind: got medusa, expected eagle or flash"));
  Json layer = eagle_of(100);
  layer["colour"] = "red";
  EXPECT_THAT(with("words", layer), HasSubstr("colour"));
}

TEST_F(TextManifestTest, RejectsWhatDoesNotFit) {
  const auto text_with = [&](const char* key, const Json& value) {
    return error_with([&](Json& json) { json["text"][key] = value; });
  };
  EXPECT_THAT(text_with("text", "{prompt}"), HasSubstr("a text with {prompt} and {image}"));
  EXPECT_THAT(text_with("stop", {512}), HasSubstr("text.stop: got id 512, expected 0..511"));
  EXPECT_THAT(text_with("before_image", {-1}), HasSubstr("text.before_image: got id -1"));
  EXPECT_THAT(text_with("length", 21),
              HasSubstr("text.length 21 leaves no room for a question and an answer"));
  EXPECT_THAT(text_with("sampling", {{"cfg_scale", 2}}), HasSubstr("cfg_scale"));
  EXPECT_THAT(text_with("voice", "low"), HasSubstr("voice"));
  EXPECT_THAT(error_with([](Json& json) { json["modules"]["target"].erase("methods"); }),
              HasSubstr("expected text_logits among modules.target.methods"));
  EXPECT_THAT(error_with([](Json& json) { json.erase("tokenizer"); }), HasSubstr("a tokenizer of kind bpe"));
}

}  // namespace
}  // namespace lamplighter
