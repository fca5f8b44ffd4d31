#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "serve/http_error.h"
#include "serve/parse.h"

namespace lamplighter {
namespace {

TEST(ServeParseWebuiTest, TheWebUiTakesNumbersAsTexts) {
  const auto read = [](const std::string& text) { return parse_txt2img(parse_body(text), {}); };
  const ImagesWanted wanted =
      read(R"({"prompt": "7", "width": "512", "height": "256.0", "cfg_scale": "3.5", "batch_size": "2"})");
  EXPECT_EQ(wanted.request.prompt, "7");
  EXPECT_EQ(wanted.request.width, 512);
  EXPECT_EQ(wanted.request.height, 256);
  EXPECT_EQ(wanted.request.cfg_scale, 3.5F);
  EXPECT_EQ(wanted.count, 2);
  EXPECT_EQ(read(R"({"prompt": "a", "cfg_scale": "7"})").request.cfg_scale, std::nullopt);
  for (const char* width : {R"("wide")", R"("")", R"("[512]")", R"("512.5")"})
    EXPECT_THROW(read(std::string(R"({"prompt": "a", "width": )") + width + "}"), HttpError) << width;
}

TEST(ServeParseWebuiTest, ReadsTheFormOfTheWebUi) {
  const Json body = parse_body(
      R"({"prompt": "a house", "negative_prompt": "fog", "seed": -1, "steps": 20, "batch_size": 2, "n_iter": 3,
          "width": 256, "height": 256, "cfg_scale": 3, "sampler_name": "Euler a", "method": "ar",
          "override_settings": {"sd_model_checkpoint": "demo"}, "alwayson_scripts": {}})");
  const ImagesWanted wanted = parse_txt2img(body, {});
  EXPECT_EQ(wanted.model, "demo");
  EXPECT_EQ(wanted.count, 6);
  EXPECT_EQ(wanted.request.negative_prompt, "fog");
  EXPECT_FALSE(
      parse_txt2img(parse_body(R"({"prompt": "a", "negative_prompt": ""})"), {}).request.negative_prompt);
  EXPECT_EQ(wanted.request.cfg_scale, 3.0F);
  EXPECT_EQ(wanted.request.width, 256);
  EXPECT_EQ(wanted.method.method, "ar");
  const auto refuses = [](const std::string& text) {
    try {
      parse_txt2img(parse_body(text), {});
      return false;
    } catch (const HttpError& refused) {
      return refused.status() == 400;
    }
  };
  EXPECT_TRUE(refuses(R"({"prompt": "a", "batch_size": 4, "n_iter": 4})"));
  EXPECT_TRUE(refuses(R"({"prompt": "a", "seed": -2})"));
  EXPECT_TRUE(refuses(R"({"prompt": "a", "override_settings": 7})"));
  EXPECT_TRUE(refuses(R"({"prompt": "a", "tree": "a/b"})"));
  EXPECT_TRUE(refuses("[]"));
  EXPECT_TRUE(refuses("{}"));
}

TEST(ServeParseWebuiTest, TheGuidanceThatClientsSendByThemselvesDoesNotCount) {
  const auto guidance = [](const std::string& value, ClientGuidance rule) {
    RequestRules rules;
    rules.webui_guidance = rule;
    return parse_txt2img(parse_body(R"({"prompt": "a", "cfg_scale": )" + value + "}"), rules)
        .request.cfg_scale;
  };
  EXPECT_EQ(guidance("7", ClientGuidance::automatic), std::nullopt);
  EXPECT_EQ(guidance("7.0", ClientGuidance::automatic), std::nullopt);
  EXPECT_EQ(guidance("6.5", ClientGuidance::automatic), 6.5F);
  EXPECT_EQ(guidance("7", ClientGuidance::always), 7.0F);
  EXPECT_EQ(guidance("6.5", ClientGuidance::never), std::nullopt);
}

TEST(ServeParseWebuiTest, ImagesThatAreGivenHaveNumbersInAllForms) {
  const auto read = [](const std::string& fields) {
    const std::string image = R"({"prompt": "a", "init_images": ["iVBO\nRw0K\r\n"])";
    return *parse_img2img(parse_body(image + fields + "}"), {}).edit;
  };
  for (const char* number : {"1", "1.0", R"("1")", R"("1.0")", "true"}) {
    const EditWanted edit = read(std::string(R"(, "mask": "iVBO", "inpainting_mask_invert": )") + number);
    EXPECT_EQ(edit.form, MaskForm::black) << number;
  }
  for (const char* number : {"1", "1.0", R"("1")", R"("1.0")"}) {
    const EditWanted edit =
        read(std::string(R"(, "keep_rows": )") + number + R"(, "resize_mode": )" + number);
    EXPECT_EQ(edit.part.rows, 1) << number;
    EXPECT_EQ(edit.fit, Fit::crop) << number;
  }
  EXPECT_EQ(read(R"(, "keep_rows": 1)").image, "\x89PNG\r\n");
  EXPECT_EQ(read(R"(, "region": [16.0, 0.0, 16.0, 32])").part.region->x, 16);
  const EditWanted empty =
      read(R"(, "keep_rows": 1, "mask": "", "region": "", "keep_tokens": "", "behind": "",
                                   "pick": "", "candidates": "", "resize_mode": "", "inpainting_mask_invert": "")");
  EXPECT_EQ(empty.form, MaskForm::white);
  EXPECT_FALSE(empty.part.region || empty.part.tokens || empty.how);
  for (const char* value : {R"("yes")", "[]", "{}", "1.5", R"("1.5")", "4", "-1"}) {
    for (const char* key : {"inpainting_mask_invert", "resize_mode"}) {
      const std::string field = std::string(R"(, "keep_rows": 1, ")") + key + "\": " + value;
      EXPECT_THROW(read(field), HttpError) << field;
    }
  }
}

}  // namespace
}  // namespace lamplighter
