#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "lamplighter/pipeline.h"

// Images that two threads encode at once: a server's edits and questions.

namespace lamplighter {
namespace {

std::unique_ptr<TextToImage> demo_engine() {
  RuntimeOptions options;
  options.device = "cpu";
  options.verify_checksums = false;
  return std::make_unique<TextToImage>(LAMPLIGHTER_SOURCE_DIR "/models/demo/bundle", options);
}

Image gradient(int number) {
  Image image{256, 256, {}};
  for (int y = 0; y < image.height; ++y) {
    for (int x = 0; x < image.width; ++x) {
      for (int channel = 0; channel < 3; ++channel)
        image.pixels.push_back(static_cast<std::uint8_t>((x * (number + channel) + y * (3 - channel)) / 4));
    }
  }
  return image;
}

// One thread encodes the first image, another the second. The second begins when the first has begun, and
// `later`.
std::vector<Codes> encode_by_two(TextToImage& engine, const std::vector<Image>& images,
                                 std::chrono::milliseconds later) {
  std::promise<void> begun;
  std::future<Codes> first = std::async(std::launch::async, [&] {
    begun.set_value();
    return engine.encode(images[0]);
  });
  begun.get_future().wait();
  std::this_thread::sleep_for(later);
  Codes second = engine.encode(images[1]);
  return {first.get(), std::move(second)};
}

// Each engine loads the encoder while both threads ask for it.
TEST(EncodeThreads, TwoGiveTheCodesOfOne) {
  const std::vector<Image> images{gradient(1), gradient(7)};
  const std::unique_ptr<TextToImage> alone = demo_engine();
  const std::vector<Codes> expected{alone->encode(images[0]), alone->encode(images[1])};
  EXPECT_NE(expected[0].ids, expected[1].ids);
  for (int round = 0; round < 60; ++round) {
    const std::unique_ptr<TextToImage> engine = demo_engine();
    const std::vector<Codes> codes = encode_by_two(*engine, images, std::chrono::milliseconds(round % 10));
    for (const std::size_t i : {0, 1})
      EXPECT_EQ(codes[i].ids, expected[i].ids) << "image " << i << " in round " << round;
  }
}

}  // namespace
}  // namespace lamplighter
