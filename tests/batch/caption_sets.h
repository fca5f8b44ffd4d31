#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "batch/captions/captions.h"
#include "lamplighter/error.h"

namespace lamplighter {

using Captions = std::vector<Caption>;

inline std::vector<std::string> prompts(const Captions& captions) {
  std::vector<std::string> texts;
  for (const Caption& caption : captions) texts.push_back(caption.request.prompt);
  return texts;
}

// Message of the error that an action throws.
inline std::string message_of(const std::function<void()>& action, ExitCode code = ExitCode::input) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    EXPECT_LT(std::string(error.what()).size(), 400U) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error was thrown";
  return "";
}

// Two images; the first one's longer caption comes last. Ids are unsorted, and one is a text.
constexpr std::string_view kCoco = R"({"info": {"year": 2017},
  "annotations": [
    {"caption": "A cat.", "id": 9, "image_id": 5, "score": 1},
    {"image_id": "12433", "id": "1", "caption": " Ten\nbirds "},
    {"image_id": 5, "id": 3, "caption": "A cat on ü"}],
  "licenses": [{"id": 9}], "extra": null})";

// Files of the project's shared folder, outside the repository.
inline const std::string kShared = LAMPLIGHTER_SOURCE_DIR "/../shared/data/prompts/";

}  // namespace lamplighter
